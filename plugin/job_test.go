package plugin

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
)

type point struct {
	X int `json:"x"`
	Y int `json:"y"`
}

func TestAJobTellsWhatItsStartSaid(t *testing.T) {
	var got Job[point]
	var parent, state string
	var deadline time.Time
	o := serving(t, Handle("POINT", func(ctx context.Context, j Job[point]) error {
		got = j
		parent, state = TraceContext(ctx)
		deadline, _ = ctx.Deadline()
		return nil
	}))
	s := o.newStart("POINT", `{"x": 1, "y": 2, "z": 3}`)
	s.Attempt, s.Traceparent, s.Tracestate, s.TimeoutMs = 3, "00-ab-cd-01", "k=v", 60_000
	o.send(&handlerv1.WorkRequest{Starts: []*handlerv1.Start{s}})
	require.NotNil(t, o.outcome(s.GetHandle()).GetSucceeded())

	got.attempt = nil
	require.Equal(t, Job[point]{
		Args: point{1, 2}, ID: "job-1", Type: "POINT", Tenant: "default", Payload: json.RawMessage(`{"x": 1, "y": 2, "z": 3}`),
		Attempt: 3, MaxAttempts: 4, Fence: 7, CreatedAt: time.Date(2026, 2, 20, 1, 2, 3, 456_000_000, time.UTC),
	}, got)
	require.Equal(t, "00-ab-cd-01", parent)
	require.Equal(t, "k=v", state)
	require.WithinDuration(t, time.Now().Add(time.Minute), deadline, 50*time.Second)
}

func TestPayloadsInTheirManyForms(t *testing.T) {
	decode := func(payload string, args any) error {
		switch args := args.(type) {
		case *point:
			return decodePayload([]byte(payload), args)
		case **point:
			return decodePayload([]byte(payload), args)
		case *map[string]int:
			return decodePayload([]byte(payload), args)
		case *string:
			return decodePayload([]byte(payload), args)
		case *any:
			return decodePayload([]byte(payload), args)
		case *int:
			return decodePayload([]byte(payload), args)
		}
		panic("a type that no case uses")
	}
	cases := map[string]struct {
		payload string
		into    any
		want    any
	}{
		"an object":                       {`{"x":1}`, new(point), &point{X: 1}},
		"null":                            {`null`, new(point), &point{}},
		"a text that holds an object":     {`"{\"x\":1,\"y\":2}"`, new(point), &point{1, 2}},
		"the same for a pointer":          {`"{\"x\":1}"`, new(*point), new(&point{X: 1})},
		"the same for a map":              {`"{\"x\":1}"`, new(map[string]int), &map[string]int{"x": 1}},
		"a text stays a text":             {`"{\"x\":1}"`, new(string), new(`{"x":1}`)},
		"also where anything may be":      {`"{\"x\":1}"`, new(any), new(any(`{"x":1}`))},
		"the same for a number":           {`"5"`, new(int), new(5)},
		"names are exact":                 {`{"x":1,"X":2,"Y":3}`, new(point), &point{X: 1}},
		"whatever comes first":            {`{"X":2,"x":1}`, new(point), &point{X: 1}},
		"also in a text":                  {`"{\"x\":1,\"X\":2,\"Y\":3}"`, new(point), &point{X: 1}},
		"the last of a name counts":       {`{"x":1,"x":2,"y":3,"y":null}`, new(point), &point{X: 2}},
		"even where the first is wrong":   {`{"x":"one","x":1}`, new(point), &point{X: 1}},
		"nor an object from an odd text":  {`"x"`, new(point), nil},
		"nor from a text within the text": {`"\"{}\""`, new(point), nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := decode(c.payload, c.into)
			if c.want == nil {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, c.into)
		})
	}
}

func TestReportsComeBeforeTheOutcomeAndTheLastOneCounts(t *testing.T) {
	o := serving(t, Handle("REPORT", func(ctx context.Context, j Job[any]) error {
		for i := range 1000 {
			if err := j.Progress(i); err != nil {
				return err
			}
			if err := j.Checkpoint(point{i, -i}); err != nil {
				return err
			}
		}
		Logger(ctx).Info("done")
		return nil
	}))
	handle := o.start("REPORT", `null`)
	require.NotNil(t, o.outcome(handle).GetSucceeded())
	var progress, checkpoint string
	var log []*handlerv1.Log
	for _, m := range o.seen {
		for _, p := range m.GetProgress() {
			require.Equal(t, handle, p.GetHandle())
			progress = string(p.GetProgress())
		}
		for _, c := range m.GetCheckpoints() {
			require.Equal(t, handle, c.GetHandle())
			checkpoint = string(c.GetCheckpoint())
		}
		log = append(log, m.GetLogs()...)
	}
	require.Equal(t, "999", progress)
	require.JSONEq(t, `{"x":999,"y":-999}`, checkpoint)
	require.Len(t, log, 1)
}

func TestTheNextAttemptResumesFromTheCheckpoint(t *testing.T) {
	o := serving(t, HandleResult("RESUME", func(_ context.Context, j Job[any]) (any, error) {
		at := point{X: -1}
		found, err := j.Resume(&at)
		return []any{found, at.X}, err
	}))
	require.JSONEq(t, `[false,-1]`, string(o.run("RESUME", `null`).GetSucceeded().GetResult()))
	s := o.newStart("RESUME", `null`)
	s.Checkpoint = []byte(`{"x":5}`)
	bad := o.newStart("RESUME", `null`)
	bad.Checkpoint = []byte(`[]`)
	o.send(&handlerv1.WorkRequest{Starts: []*handlerv1.Start{s, bad}})
	require.JSONEq(t, `[true,5]`, string(o.outcome(s.GetHandle()).GetSucceeded().GetResult()))
	require.Contains(t, o.outcome(bad.GetHandle()).GetFailed().GetMessage(), "resume: ")
}

func TestAnEndedAttemptReportsNothing(t *testing.T) {
	left := make(chan Job[any], 1)
	o := serving(t,
		Handle("LEAVE", func(_ context.Context, j Job[any]) error { left <- j; return nil }),
		Handle("NEXT", func(context.Context, Job[any]) error { return nil }))
	o.run("LEAVE", `null`)
	j := <-left
	require.ErrorIs(t, j.Progress(1), errEnded)
	require.ErrorIs(t, j.Checkpoint(1), errEnded)
	o.run("NEXT", `null`)
	for _, m := range o.seen {
		require.Empty(t, m.GetProgress())
		require.Empty(t, m.GetCheckpoints())
	}
}

func TestAReportThatIsNotJSONIsRefused(t *testing.T) {
	for _, j := range []Job[any]{{}, {attempt: &attempt{session: newSession(nil, limitsOf(nil), nil)}}} {
		require.ErrorContains(t, j.Progress(make(chan int)), "progress: ")
		require.ErrorContains(t, j.Checkpoint(json.RawMessage(`{`)), "checkpoint: ")
		require.NoError(t, j.Progress("half"))
	}
}

func TestAJobMadeByHandReportsNowhere(t *testing.T) {
	j := Job[point]{Args: point{1, 2}}
	require.NoError(t, j.Progress(1))
	require.NoError(t, j.Checkpoint(1))
	found, err := j.Resume(new(int))
	require.NoError(t, err)
	require.False(t, found)
	Logger(t.Context()).Debug("to standard error, if at all")
	parent, state := TraceContext(t.Context())
	require.Empty(t, parent+state)
}

package plugin

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
)

const (
	aTrace = "0af7651916cd43dd8448eb211c80319c"
	aSpan  = "b7ad6b7169203331"
)

func TestHandlersHaveTheSpanOfTheirAttempt(t *testing.T) {
	cases := map[string]struct {
		parent, state  string
		valid, sampled bool
		wantState      string
	}{
		"none":              {},
		"sampled":           {parent: "00-" + aTrace + "-" + aSpan + "-01", state: "vendor=blue", valid: true, sampled: true, wantState: "vendor=blue"},
		"not sampled":       {parent: "00-" + aTrace + "-" + aSpan + "-00", valid: true},
		"more flags":        {parent: "00-" + aTrace + "-" + aSpan + "-f3", valid: true, sampled: true},
		"an odd state":      {parent: "00-" + aTrace + "-" + aSpan + "-01", state: "=", valid: true, sampled: true},
		"a later version":   {parent: "01-" + aTrace + "-" + aSpan + "-01-more-and-more", valid: true, sampled: true},
		"too much for 00":   {parent: "00-" + aTrace + "-" + aSpan + "-01-more"},
		"no version":        {parent: "ff-" + aTrace + "-" + aSpan + "-01"},
		"upper case":        {parent: "00-" + aTrace + "-B7AD6B7169203331-01"},
		"no trace":          {parent: "00-00000000000000000000000000000000-" + aSpan + "-01"},
		"flags that are no": {parent: "00-" + aTrace + "-" + aSpan + "-0g"},
		"too short":         {parent: "00-ab-cd-01"},
		"nonsense":          {parent: "nonsense"},
	}
	var got trace.SpanContext
	o := serving(t, Handle("LOOK", func(ctx context.Context, _ Job[any]) error {
		got = trace.SpanContextFromContext(ctx)
		return nil
	}))
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := o.newStart("LOOK", `null`)
			s.Traceparent, s.Tracestate = c.parent, c.state
			o.send(&handlerv1.WorkRequest{Starts: []*handlerv1.Start{s}})
			require.NotNil(t, o.outcome(s.GetHandle()).GetSucceeded())
			require.Equal(t, c.valid, got.IsValid())
			if c.valid {
				require.Equal(t, aTrace, got.TraceID().String())
				require.Equal(t, aSpan, got.SpanID().String())
				require.True(t, got.IsRemote())
			}
			require.Equal(t, c.sampled, got.IsSampled())
			require.Equal(t, c.wantState, got.TraceState().String())
		})
	}
}

func TestHandlersHaveTheBaggageThatCanBeRead(t *testing.T) {
	const text = "user=ada,bad=%zz,plan=gold;since=2024"
	var whole string
	var read baggage.Baggage
	o := serving(t, Handle("LOOK", func(ctx context.Context, _ Job[any]) error {
		whole, read = Baggage(ctx), baggage.FromContext(ctx)
		return nil
	}))
	s := o.newStart("LOOK", `null`)
	s.Baggage = text
	o.send(&handlerv1.WorkRequest{Starts: []*handlerv1.Start{s}})
	require.NotNil(t, o.outcome(s.GetHandle()).GetSucceeded())
	require.Equal(t, text, whole)
	require.Equal(t, "ada", read.Member("user").Value())
	require.Equal(t, "gold", read.Member("plan").Value())
	require.Equal(t, 2, read.Len())
}

func TestLogRecordsHaveTheIDsOfTheSpan(t *testing.T) {
	o := serving(t, Handle("CANCEL", func(ctx context.Context, _ Job[any]) error {
		Logger(ctx).WithGroup("g").Info("hello", "n", 1)
		return Cancel(errors.New("no such printer"))
	}))
	s := o.newStart("CANCEL", `null`)
	s.Traceparent = "00-" + aTrace + "-" + aSpan + "-01"
	o.send(&handlerv1.WorkRequest{Starts: []*handlerv1.Start{s}})
	require.NotNil(t, o.outcome(s.GetHandle()).GetCanceled())
	var said []string
	for _, m := range o.seen {
		for _, record := range m.GetLogs() {
			said = append(said, string(record.GetAttributes()))
		}
	}
	require.Equal(t, []string{
		`{"trace_id":"` + aTrace + `","span_id":"` + aSpan + `","g":{"n":1}}`,
		`{"trace_id":"` + aTrace + `","span_id":"` + aSpan + `","reason":"no such printer"}`,
	}, said)
}

func TestADrainedProcessDoesWhatIsToBeDoneBeforeItLeaves(t *testing.T) {
	var order []string
	o := serving(t,
		Handle("WORK", func(context.Context, Job[any]) error {
			order = append(order, "attempt")
			return nil
		}),
		OnDrain(func(ctx context.Context) {
			_, bounded := ctx.Deadline()
			require.True(t, bounded)
			order = append(order, "on drain")
		}))
	handle := o.start("WORK", `null`)
	o.send(&handlerv1.WorkRequest{Drain: true})
	o.outcome(handle)
	require.NoError(t, o.end())
	<-o.drained
	require.Equal(t, []string{"attempt", "on drain"}, order)
}

func TestWhatIsDoneBeforeAProcessLeavesIsNotWaitedForLong(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	o := serving(t, Handle("WORK", func(context.Context, Job[any]) error { return nil }),
		OnDrain(func(context.Context) { <-release }))
	o.send(&handlerv1.WorkRequest{Drain: true})
	require.NoError(t, o.end())
	_, err := assemble([]Part{OnDrain(nil)})
	require.ErrorContains(t, err, "OnDrain")
}

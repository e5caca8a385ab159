package spans

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// run is the process span of an attempt that took so long, with the events, and was
// settled so.
func run(t *testing.T, began time.Time, took time.Duration, s *job.Settlement, events ...event) tracetest.SpanStub {
	t.Helper()
	tracer, told := recorded(t)
	c := claimed(began)
	a := tracer.Claimed(&c, "w", began, began)
	for _, e := range events {
		a.Happened(e.name)
		if e.name == EventCheckpoint {
			a.lastCheckpoint = e.at
		} else {
			a.events[len(a.events)-1].at = e.at
		}
	}
	a.began, a.ended = began, began.Add(took)
	a.Settled(s, a.ended)
	return told()["process MAIL"]
}

func eventNames(span tracetest.SpanStub) []string {
	var all []string
	for _, e := range span.Events {
		all = append(all, e.Name)
	}
	return all
}

// Jaeger's page hides events behind the end of the trace, which it knows by beginnings
// and lengths in whole microseconds.
func TestJaegerShowsTheErrorHoweverItTruncatesTimes(t *testing.T) {
	second := time.Now().Truncate(time.Second)
	for began := range 20 {
		for took := range 2000 / 19 {
			start := second.Add(time.Duration(began) * 51)
			span := run(t, start, time.Duration(took)*19, settled(job.Failure, job.Dead))
			shownEnd := span.StartTime.UnixMicro() + span.EndTime.Sub(span.StartTime).Microseconds()
			exception := span.Events[0].Time
			require.LessOrEqual(t, exception.UnixMicro(), shownEnd, "it began at %d ns and took %d ns", began*51, took*19)
			require.False(t, exception.Before(span.StartTime))
		}
	}
}

func TestTheErrorIsAmongTheEventsThatJaegerShows(t *testing.T) {
	at := time.Now()
	after := func(name string, seconds int) event { return event{name, at.Add(time.Duration(seconds) * time.Second)} }
	for name, c := range map[string]struct {
		happened []event
		kind     job.OutcomeKind
		shown    []string
	}{
		"many checkpoints": {
			[]event{after(EventCheckpoint, 1), after(EventCheckpoint, 2), after(EventCheckpoint, 3), after(EventCheckpoint, 4)},
			job.Failure,
			[]string{EventCheckpoint, eventException},
		},
		"a checkpoint after the stop": {
			[]event{after(EventTimedOut, 1), after(EventCheckpoint, 2)},
			job.Timeout,
			[]string{EventTimedOut, EventCheckpoint, eventException},
		},
		"killed": {
			[]event{after(EventCheckpoint, 1), after(EventTimedOut, 2), after(EventKilled, 3)},
			job.Timeout,
			[]string{EventTimedOut, EventKilled, eventException},
		},
		"no error": {
			[]event{after(EventCheckpoint, 1), after(EventCancelRequested, 2), after(EventKilled, 3)},
			job.CancelConfirmed,
			[]string{EventCheckpoint, EventCancelRequested, EventKilled},
		},
	} {
		t.Run(name, func(t *testing.T) {
			checkpoints := 0
			for _, e := range c.happened {
				if e.name == EventCheckpoint {
					checkpoints++
				}
			}
			span := run(t, at, 5*time.Second, settled(c.kind, job.Dead), c.happened...)
			require.Equal(t, c.shown, eventNames(span))
			require.Contains(t, span.Attributes, attrCheckpoints.Int(checkpoints))
			for i := range span.Events[1:] {
				require.False(t, span.Events[i+1].Time.Before(span.Events[i].Time))
			}
		})
	}
}

func TestTheStatusDistinguishesAFailedAttemptFromOthers(t *testing.T) {
	for text, s := range map[string]job.Settlement{
		"attempt 2 of 4: it is full; retry in 2.1 s":              {Decision: job.Decision{Kind: job.Failure, To: job.Retry, Delay: 2080 * time.Millisecond}, Error: "it is full"},
		"attempt 2 of 4: it is full; retry in 150 ms":             {Decision: job.Decision{Kind: job.Failure, To: job.Retry, Delay: 150 * time.Millisecond}, Error: "it is full"},
		"attempt 2 of 4: it is full; retry in 1h30m0s":            {Decision: job.Decision{Kind: job.Failure, To: job.Retry, Delay: 90 * time.Minute}, Error: "it is full"},
		"attempt 2 of 4: it is full; retry at once":               {Decision: job.Decision{Kind: job.Timeout, To: job.Retry}, Error: "it is full"},
		"attempt 2 of 4: it is full; dead":                        {Decision: job.Decision{Kind: job.PermanentFailure, To: job.Dead}, Error: "it is full"},
		"attempt 2 of 4: the worker is gone; queued again":        {Decision: job.Decision{Kind: job.Interrupted, To: job.Queued}, Error: "the worker is gone"},
		"attempt 2 of 4: failed; dead":                            {Decision: job.Decision{Kind: job.Failure, To: job.Dead}},
		"attempt 2 of 4: " + strings.Repeat("x", 1024) + "; dead": {Decision: job.Decision{Kind: job.Failure, To: job.Dead}, Error: strings.Repeat("x", 2000)},
	} {
		span := run(t, time.Now(), time.Second, &s)
		require.Equal(t, codes.Error, span.Status.Code)
		require.Equal(t, text, span.Status.Description)
		require.Contains(t, span.Events[0].Attributes, attrExceptionText.String(s.Error[:min(len(s.Error), maxMessage)]), "in the handler's own words")
	}
	succeeded := run(t, time.Now(), time.Second, settled(job.Success, job.Succeeded))
	require.Empty(t, succeeded.Status.Description)
}

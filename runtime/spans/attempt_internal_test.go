package spans

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// recorded returns a tracer, and what it has told so far.
func recorded(t *testing.T) (*Tracer, func() map[string]tracetest.SpanStub) {
	t.Helper()
	r := &recorder{t: t, sampled: true}
	return New(r), func() map[string]tracetest.SpanStub {
		told := make(map[string]tracetest.SpanStub)
		for _, span := range r.spans {
			require.NotContains(t, told, span.Name)
			told[span.Name] = span
		}
		return told
	}
}

func claimed(at time.Time) job.Claimed {
	return job.Claimed{
		Lease: job.Lease{JobID: job.ID(uuid.Must(uuid.NewV7())), Fence: 3}, Type: "MAIL", Attempt: 2, MaxAttempts: 4,
		Trace: job.Trace{Parent: parent}, CreatedAt: at.Add(-time.Hour), RunAt: at.Add(-2 * time.Second), ClaimedAt: at,
		Last: &job.LastAttempt{EndedAt: at.Add(-5 * time.Second), Outcome: job.Failure},
	}
}

func settled(kind job.OutcomeKind, to job.State) *job.Settlement {
	return &job.Settlement{Decision: job.Decision{Kind: kind, To: to}}
}

func TestNoSpanHasANegativeLengthWhateverTheClocksSay(t *testing.T) {
	for name, ahead := range map[string]time.Duration{
		"agrees": 0, "an hour ahead": time.Hour, "an hour behind": -time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			tracer, told := recorded(t)
			sent := time.Now().Add(-time.Second)
			c := claimed(sent.Add(ahead))
			a := tracer.Claimed(&c, "w", sent, sent.Add(time.Millisecond))
			began := sent.Add(2 * time.Millisecond)
			a.events = []event{{EventCancelRequested, began.Add(-time.Second)}, {EventKilled, began.Add(time.Hour)}}
			a.Ended(began)
			a.Settled(settled(job.Success, job.Succeeded), time.Now())
			spans := told()
			wait, queue, run := spans["retry wait MAIL"], spans["queue wait MAIL"], spans["process MAIL"]
			require.WithinDuration(t, sent.Add(-5*time.Second), wait.StartTime, 10*time.Millisecond)
			require.Equal(t, 3*time.Second, wait.EndTime.Sub(wait.StartTime))
			require.Equal(t, wait.EndTime, queue.StartTime)
			require.True(t, queue.EndTime.Equal(began))
			require.True(t, run.StartTime.Equal(began))
			require.False(t, run.EndTime.Before(run.StartTime))
			require.Equal(t, run.StartTime, run.Events[0].Time)
			require.Equal(t, run.EndTime.Add(-time.Microsecond), run.Events[1].Time)
		})
	}
}

func TestAnAttemptWhoseHandlerNeverBeganIsAWaitWithTheLinkedID(t *testing.T) {
	tracer, told := recorded(t)
	c := claimed(time.Now())
	a := tracer.Claimed(&c, "w", time.Now(), time.Now())
	a.Ended(time.Time{})
	a.Settled(settled(job.Released, job.Queued), time.Now())
	require.NotContains(t, told(), "process MAIL")
	wait := told()["queue wait MAIL"]
	require.Equal(t, a.ID(), wait.SpanContext.SpanID().String())
	require.Equal(t, attemptID(c.JobID, 2), wait.Links[0].SpanContext.SpanID())
	require.Contains(t, c.Trace.Parent, a.ID())
	require.Subset(t, wait.Attributes, []attribute.KeyValue{attrOutcome.String("given_back"), attrState.String("queued")})

	next := claimed(time.Now())
	next.JobID, next.Fence, next.Trace.Parent = c.JobID, 4, parent
	after := tracer.Claimed(&next, "w", time.Now(), time.Now())
	require.Equal(t, a.own, after.own.WithSpanID(attemptID(c.JobID, 3)))
}

func TestAWorkerThatLostItsLeaseExportsASpanBesideTheReapers(t *testing.T) {
	tracer, told := recorded(t)
	at := time.Now()
	c := claimed(at)
	lost := tracer.Claimed(&c, "late", at, at)
	reaped := tracer.Reaped(&job.Expired{
		Lease: job.Lease{JobID: c.JobID, Fence: c.Fence}, Type: "MAIL", Worker: "late", Trace: job.Trace{Parent: parent},
		ClaimedAt: at, HeartbeatAt: at.Add(time.Second), ExpiredAt: at.Add(2 * time.Second), ReapedAt: at.Add(3 * time.Second),
	}, "reaper")
	reaped.Settled(settled(job.LeaseExpired, job.Retry), time.Now())
	lost.Happened(EventLeaseLost)
	lost.Ended(at)
	lost.Lost(settled(job.Success, job.Succeeded))

	run, late := told()["process MAIL"], told()["lease lost MAIL"]
	require.NotContains(t, told(), "queue wait MAIL", "the worker exports it when the handler begins")
	require.Equal(t, run.SpanContext.SpanID(), late.Links[0].SpanContext.SpanID())
	require.NotEqual(t, run.SpanContext.SpanID(), late.SpanContext.SpanID())
	require.Equal(t, 3*time.Second, run.EndTime.Sub(run.StartTime))
	require.Equal(t, eventLastHeartbeat, run.Events[0].Name)
	require.Equal(t, eventLeaseExpired, run.Events[1].Name)
	require.Equal(t, EventLeaseLost, late.Events[0].Name)
}

func TestALeaseThatOutlivesTheProcessIsAWait(t *testing.T) {
	tracer, told := recorded(t)
	at := time.Now()
	c := claimed(at)
	a := tracer.Claimed(&c, "w", at, at)
	a.Ended(at)
	a.Held()
	a.Settled(settled(job.Crash, job.Retry), at.Add(time.Minute))
	run, wait := told()["process MAIL"], told()["lease wait MAIL"]
	require.Equal(t, run.EndTime, wait.StartTime)
	require.True(t, wait.EndTime.Equal(at.Add(time.Minute)))
	require.Equal(t, run.Parent.SpanID(), wait.Parent.SpanID())
	require.Subset(t, run.Attributes, wait.Attributes)
	require.Contains(t, wait.Attributes, attrFence.Int64(3))
}

func TestAnAttemptThatEndsBeforeItsLeaseHasNoWaitForIt(t *testing.T) {
	tracer, told := recorded(t)
	c := claimed(time.Now())
	a := tracer.Claimed(&c, "w", time.Now(), time.Now())
	a.Ended(time.Now())
	a.Settled(settled(job.Crash, job.Retry), time.Now().Add(time.Minute))
	require.NotContains(t, told(), "lease wait MAIL")
}

func TestAJobThatIsNotSampledKeepsItsContextAndHasNoSpans(t *testing.T) {
	tracer, told := recorded(t)
	for _, carried := range []string{"", "nonsense", parent[:53] + "00", parent[:53] + "zz", "00-" + parent[36:], "00-0-0-01"} {
		c := claimed(time.Now())
		c.Trace.Parent = carried
		require.Nil(t, tracer.Claimed(&c, "w", time.Now(), time.Now()), carried)
		require.Equal(t, carried, c.Trace.Parent)
	}
	require.Empty(t, told())
}

func TestNothingIsAllocatedWhereNothingIsTraced(t *testing.T) {
	var off *Tracer
	tracer, _ := recorded(t)
	c := claimed(time.Now())
	c.Trace.Parent = parent[:53] + "00"
	end := settled(job.Success, job.Succeeded)
	for name, tracer := range map[string]*Tracer{"off": off, "not sampled": tracer} {
		require.Zero(t, testing.AllocsPerRun(100, func() {
			a := tracer.Claimed(&c, "w", time.Time{}, time.Time{})
			a.Began(time.Time{})
			a.Happened(EventCheckpoint)
			a.Ended(time.Time{})
			_ = a.ID()
			a.Held()
			a.Settled(end, time.Time{})
			a.Lost(end)
		}), name)
	}
}

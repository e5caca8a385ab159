package spans

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestTheJobOfATickBeginsATrace(t *testing.T) {
	tracer, spans := recorded(t)
	one := job.Submission{Type: "REPORT", Tenant: "acme", MaxAttempts: 3}
	sent := tracer.SendTick(&one, "morning", time.Date(2026, 2, 20, 5, 30, 0, 0, time.UTC))
	sent.Done(job.Submitted{Receipt: job.Receipt{State: job.Queued}})
	span, found := spans()["send REPORT"]
	require.True(t, found)
	require.False(t, span.Parent.IsValid(), "it is the beginning")
	require.Contains(t, span.Attributes, attrSchedule.String("morning"))
	require.Contains(t, span.Attributes, attrTick.String("2026-02-20T05:30:00Z"))
	require.Equal(t, span.SpanContext.TraceID().String(), one.Trace.ID(), "the job carries it on")

	var none *Tracer
	none.SendTick(&one, "morning", time.Now()).Done(job.Submitted{})
}

func TestATickThatIsNotSampledHasAContextAndNoSpan(t *testing.T) {
	r := &recorder{t: t}
	one := job.Submission{Type: "REPORT"}
	require.Nil(t, New(r).SendTick(&one, "morning", time.Now()))
	require.Regexp(t, "^00-[0-9a-f]{32}-[0-9a-f]{16}-00$", one.Trace.Parent)
	require.Empty(t, r.spans)
}

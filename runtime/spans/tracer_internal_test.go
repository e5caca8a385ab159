package spans

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestAnErrorHasOneKind(t *testing.T) {
	for range 100 {
		kind, text := failure(fmt.Errorf("submit: %w: %w", job.ErrUnavailable, context.DeadlineExceeded))
		require.Equal(t, "unavailable", kind)
		require.Equal(t, job.ErrUnavailable.Error(), text)
	}
	kind, text := failure(fmt.Errorf("the payload: %q", "secret"))
	require.Equal(t, "_OTHER", kind)
	require.NotContains(t, text, "secret")
}

func TestJobsOfARequestThatIsNotSampledKeepItsContext(t *testing.T) {
	tracer, told := recorded(t)
	dark, isSampled := sampled(job.Trace{Parent: parent, State: "vendor=value"})
	require.True(t, isSampled)
	dark = dark.WithTraceFlags(0)
	ctx := trace.ContextWithRemoteSpanContext(context.Background(), dark)
	theirs := job.Trace{Parent: "00-" + parent[3:35] + "-0000000000000001-00", Baggage: "c=d"}
	batch := []job.Submission{{Type: "MAIL", Trace: job.Trace{Baggage: "a=b"}}, {Type: "MAIL", Trace: theirs}}
	require.Nil(t, tracer.SendAll(ctx, batch))
	inherited := job.Trace{Parent: parent[:53] + "00", State: "vendor=value", Baggage: "a=b"}
	require.Equal(t, inherited, batch[0].Trace)
	require.Equal(t, theirs, batch[1].Trace)

	one := job.Submission{Type: "MAIL", Trace: job.Trace{Baggage: "a=b"}}
	require.Nil(t, tracer.Send(ctx, &one))
	require.Equal(t, inherited, one.Trace)
	require.Nil(t, tracer.Send(context.Background(), &one), "without a request")
	require.Equal(t, inherited, one.Trace)
	require.Empty(t, told())
}

func TestASubmissionIsToldOnce(t *testing.T) {
	tracer, told := recorded(t)
	sampled, _ := sampled(job.Trace{Parent: parent})
	one := job.Submission{Type: "MAIL"}
	sent := tracer.Send(trace.ContextWithSpanContext(context.Background(), sampled), &one)
	sent.Done(job.Submitted{})
	sent.Done(job.Submitted{Err: job.ErrUnavailable})
	require.Len(t, told(), 1)
	require.Empty(t, told()["send MAIL"].Status)
}

package spans

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestARequestHasASpanInTheTraceOfItsJobWithALinkBack(t *testing.T) {
	tracer, told := recorded(t)
	ctx, request := sdk.NewTracerProvider().Tracer("").Start(context.Background(), "the request")
	view := job.View{ID: job.ID{1}, Type: "MAIL", State: job.Canceled, Trace: job.Trace{Parent: parent}}
	tracer.Canceled(ctx, view, time.Now().Add(-time.Second))
	view.State = job.Queued
	tracer.Requeued(ctx, job.Requeued{ID: view.ID, Type: view.Type, Tenant: view.Tenant, Trace: view.Trace}, time.Now().Add(-time.Second))
	tracer.Edited(ctx, job.Edited{ID: view.ID, Type: view.Type, State: job.Created, Trace: view.Trace}, time.Now().Add(-time.Second))
	request.End()
	for name, state := range map[string]string{"cancel MAIL": "canceled", "requeue MAIL": "queued", "edit MAIL": "created"} {
		span := told()[name]
		require.Equal(t, parent[36:52], span.Parent.SpanID().String())
		require.Equal(t, parent[3:35], span.SpanContext.TraceID().String())
		require.InDelta(t, 1, span.EndTime.Sub(span.StartTime).Seconds(), 0.1)
		require.Equal(t, request.SpanContext().SpanID(), span.Links[0].SpanContext.SpanID())
		require.Equal(t, []attribute.KeyValue{attrLink.String(linkRequest)}, span.Links[0].Attributes)
		require.Contains(t, span.Attributes, attrState.String(state))
	}
}

func TestASpanOfWhatARequestDidLiesWithinTheRequest(t *testing.T) {
	tracer, told := recorded(t)
	ctx, request := sdk.NewTracerProvider().Tracer("").Start(context.Background(), "the request")
	began := request.(sdk.ReadOnlySpan).StartTime()
	tracer.Canceled(ctx, job.View{Type: "MAIL", Trace: job.Trace{Parent: parent}}, began)
	request.End()
	did := told()["cancel MAIL"]
	require.False(t, did.StartTime.Before(began), "began %s too early", began.Sub(did.StartTime))
	require.False(t, did.EndTime.After(request.(sdk.ReadOnlySpan).EndTime()))
}

func TestAJobThatExpiresHasASpanWithTheReason(t *testing.T) {
	tracer, told := recorded(t)
	lapsed := job.Lapsed{ID: job.ID{1}, Type: "MAIL", Reason: "expired", Trace: job.Trace{Parent: parent}}
	tracer.Lapsed(lapsed, time.Now())
	(*Tracer)(nil).Lapsed(lapsed, time.Now())
	span := told()["expire MAIL"]
	require.Equal(t, parent[36:52], span.Parent.SpanID().String())
	require.Empty(t, span.Links)
	require.Contains(t, span.Attributes, attrReason.String("expired"))
	require.Contains(t, span.Attributes, attrState.String("canceled"))
}

func TestARequestHasNoSpanInTheTraceOfAJobThatIsNotSampled(t *testing.T) {
	tracer, told := recorded(t)
	ctx, request := sdk.NewTracerProvider().Tracer("").Start(context.Background(), "the request")
	tracer.Canceled(ctx, job.View{Type: "MAIL", Trace: job.Trace{Parent: parent[:53] + "00"}}, time.Now())
	tracer.Requeued(ctx, job.Requeued{Type: "MAIL", Trace: job.Trace{Parent: parent[:53] + "00"}}, time.Now())
	tracer.Edited(ctx, job.Edited{Type: "MAIL", Trace: job.Trace{Parent: parent[:53] + "00"}}, time.Now())
	(*Tracer)(nil).Canceled(ctx, job.View{Type: "MAIL", Trace: job.Trace{Parent: parent}}, time.Now())
	(*Tracer)(nil).Requeued(ctx, job.Requeued{Type: "MAIL", Trace: job.Trace{Parent: parent}}, time.Now())
	require.Empty(t, told())
	request.End()
}

func TestAFollowUpIsSentWithinTheAttemptThatSubmitsIt(t *testing.T) {
	tracer, told := recorded(t)
	child := job.Submission{Type: "CHILD", Trace: job.Trace{Parent: parent, Baggage: "a=b"}}
	tracer.SendWithin(job.Trace{Parent: parent, Baggage: "a=b"}, &child).Done(job.Submitted{Receipt: job.Receipt{ID: job.ID{1}, State: job.Queued}})
	sent := told()["send CHILD"]
	require.Equal(t, parent[36:52], sent.Parent.SpanID().String())
	require.Equal(t, parent[3:35], sent.SpanContext.TraceID().String())
	require.Equal(t, "00-"+parent[3:35]+"-"+sent.SpanContext.SpanID().String()+"-01", child.Trace.Parent)
	require.Equal(t, "a=b", child.Trace.Baggage)
	require.False(t, sent.EndTime.Before(sent.StartTime))

	dark := job.Trace{Parent: parent[:53] + "00"}
	child.Trace = dark
	for _, tracer := range []*Tracer{tracer, nil} {
		require.Nil(t, tracer.SendWithin(dark, &child))
		require.Equal(t, dark, child.Trace, "it keeps the context of the attempt")
	}
}

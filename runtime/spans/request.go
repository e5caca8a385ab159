package spans

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Canceled adds to the trace of a job that a request canceled it, or asked its handler to
// stop. No other span shows that. The job is as it was afterwards; the request asked the
// database at the time given.
func (t *Tracer) Canceled(ctx context.Context, canceled job.View, asked time.Time) {
	t.changed(ctx, "cancel ", canceled, asked)
}

// Requeued adds to the trace of a job that a request requeued it. The request asked the
// database at the time given.
func (t *Tracer) Requeued(ctx context.Context, requeued job.Requeued, asked time.Time) {
	t.changed(ctx, "requeue ", job.View{
		ID: requeued.ID, Type: requeued.Type, Tenant: requeued.Tenant, State: job.Queued, Trace: requeued.Trace,
	}, asked)
}

// changed makes a span of what the request of the context did to the job, in the job's
// trace and linked to the request, if the job is sampled.
func (t *Tracer) changed(ctx context.Context, did string, changed job.View, asked time.Time) {
	if t == nil {
		return
	}
	parent, ok := sampled(changed.Trace)
	if !ok {
		return
	}
	request := trace.SpanFromContext(ctx)
	now := within(request)
	options := []trace.SpanStartOption{
		trace.WithTimestamp(now.Add(-time.Since(asked))),
		trace.WithAttributes(attrJob.String(changed.ID.String()), attrType.String(changed.Type),
			attrTenant.String(changed.Tenant), attrState.String(string(changed.State))),
	}
	if request.IsRecording() {
		options = append(options, linkTo(request.SpanContext(), linkRequest))
	}
	_, span := t.tracer.Start(trace.ContextWithRemoteSpanContext(context.Background(), parent), did+changed.Type, options...)
	span.End(trace.WithTimestamp(now))
}

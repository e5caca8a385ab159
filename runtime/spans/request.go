package spans

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
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

// Edited adds to the trace of a job that a request edited it. The job is as it was
// afterwards; the request asked the database at the time given.
func (t *Tracer) Edited(ctx context.Context, edited job.Edited, asked time.Time) {
	t.changed(ctx, "edit ", job.View{
		ID: edited.ID, Type: edited.Type, Tenant: edited.Tenant, State: edited.State, Trace: edited.Trace,
	}, asked)
}

// Lapsed adds to the trace of a job that it was canceled, and why: it had not started by
// its time. The database was asked for such jobs at the time given.
func (t *Tracer) Lapsed(lapsed job.Lapsed, asked time.Time) {
	t.changed(context.Background(), "expire ", job.View{
		ID: lapsed.ID, Type: lapsed.Type, Tenant: lapsed.Tenant, State: job.Canceled, Trace: lapsed.Trace,
	}, asked, attrReason.String(lapsed.Reason))
}

// changed makes a span of what the request of the context did to the job, in the job's
// trace and linked to the request, if the job is sampled. It may be no request.
func (t *Tracer) changed(ctx context.Context, did string, changed job.View, asked time.Time, about ...attribute.KeyValue) {
	if t == nil {
		return
	}
	parent, ok := sampled(changed.Trace)
	if !ok {
		return
	}
	request := trace.SpanFromContext(ctx)
	now := within(request)
	span := begin(t.exporter, parent.WithSpanID(newSpanID()), parent, trace.SpanKindInternal, did, changed.Type, now.Add(asked.Sub(now)))
	span.set(attrJob.String(changed.ID.String()), attrType.String(changed.Type),
		attrTenant.String(changed.Tenant), attrState.String(string(changed.State)))
	span.set(about...)
	if request.IsRecording() {
		span.link(request.SpanContext(), linkRequest)
	}
	span.end(now)
}

package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// The attributes of a statement's span, by OpenTelemetry's conventions for
// databases. Neither its text nor its arguments are among them.
const (
	attrSystem    attribute.Key = "db.system.name"
	attrOperation attribute.Key = "db.operation.name"
	attrStatus    attribute.Key = "db.response.status_code"
	attrErrorType attribute.Key = "error.type"
)

// SpanAttributes lists the attributes of a statement's span.
func SpanAttributes() []attribute.Key {
	return []attribute.Key{attrSystem, attrOperation, attrStatus, attrErrorType}
}

// listName names the statements that are put together in list.go.
const listName = "list"

// queries makes a span of each statement that is run within one that is recorded.
// Those of the loops are not, nor are groups of submissions, which belong to no
// request.
type queries struct{ tracer trace.Tracer }

var (
	_ pgx.QueryTracer = queries{}
	_ pgx.BatchTracer = queries{}
)

// TraceQueryStart implements pgx's QueryTracer.
func (q queries) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	return q.start(ctx, data.SQL)
}

// TraceBatchStart implements pgx's BatchTracer: a batch is one span, named after its
// first statement, which the others go with. Without this, pgx would take the end of
// each statement for the end of the request's own span.
func (q queries) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	if len(data.Batch.QueuedQueries) == 0 {
		return ctx
	}
	return q.start(ctx, data.Batch.QueuedQueries[0].SQL)
}

// TraceBatchQuery implements pgx's BatchTracer.
func (queries) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (q queries) start(ctx context.Context, sql string) context.Context {
	request := trace.SpanFromContext(ctx)
	if !request.IsRecording() {
		return ctx
	}
	name := statementNames[sql]
	if name == "" {
		name = listName
	}
	ctx, _ = q.tracer.Start(ctx, "postgresql "+name, trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(within(request)),
		trace.WithAttributes(attrSystem.String("postgresql"), attrOperation.String(name)))
	return ctx
}

// within is this moment by the clock as it was read for the span's beginning, so that
// what begins now lies within that span, however the clock is set meanwhile and however
// roughly it is read.
func within(span trace.Span) time.Time {
	if recorded, ok := span.(interface{ StartTime() time.Time }); ok {
		began := recorded.StartTime()
		return began.Add(time.Since(began))
	}
	return time.Now()
}

// TraceQueryEnd implements pgx's QueryTracer.
func (queries) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	end(ctx, data.Err)
}

// TraceBatchEnd implements pgx's BatchTracer.
func (queries) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchEndData) {
	end(ctx, data.Err)
}

func end(ctx context.Context, err error) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		kind := "_OTHER"
		var refused *pgconn.PgError
		if errors.As(err, &refused) {
			kind = refused.Code // its text may have values in it
			span.SetAttributes(attrStatus.String(kind))
		}
		span.SetAttributes(attrErrorType.String(kind))
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

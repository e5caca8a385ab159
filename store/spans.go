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

var _ pgx.QueryTracer = queries{}

// TraceQueryStart implements pgx's QueryTracer.
func (q queries) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	request := trace.SpanFromContext(ctx)
	if !request.IsRecording() {
		return ctx
	}
	name := statementNames[data.SQL]
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
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	if data.Err != nil && !errors.Is(data.Err, pgx.ErrNoRows) {
		kind := "_OTHER"
		var refused *pgconn.PgError
		if errors.As(data.Err, &refused) {
			kind = refused.Code // its text may have values in it
			span.SetAttributes(attrStatus.String(kind))
		}
		span.SetAttributes(attrErrorType.String(kind))
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

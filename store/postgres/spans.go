package postgres

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-jobs/holdfast/store/sql"
)

// The attributes of a statement's span, by OpenTelemetry's conventions for
// databases. They include neither its text nor its arguments.
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

// composedName is for statements that are in no file. Package store composes only the
// statements of List.
const composedName = "list"

// queries records a span for each statement that runs within a recorded span.
// Statements of the loops have none. Nor do groups of submissions, which belong to no
// single request.
type queries struct{ tracer trace.Tracer }

var (
	_ pgx.QueryTracer = queries{}
	_ pgx.BatchTracer = queries{}
)

// TraceQueryStart implements pgx's QueryTracer.
func (q queries) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	return q.start(ctx, data.SQL)
}

// TraceBatchStart implements pgx's BatchTracer. A batch is one span, named after its
// first statement that is not a setting. Without this, pgx would end the request's own
// span at the end of each statement.
func (q queries) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	for _, query := range data.Batch.QueuedQueries {
		if !strings.Contains(query.SQL, "select set_config(") {
			return q.start(ctx, query.SQL)
		}
	}
	return ctx
}

// TraceBatchQuery implements pgx's BatchTracer.
func (queries) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (q queries) start(ctx context.Context, text string) context.Context {
	request := trace.SpanFromContext(ctx)
	if !request.IsRecording() {
		return ctx
	}
	name := operationName(text)
	ctx, _ = q.tracer.Start(ctx, "postgresql "+name, trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(within(request)),
		trace.WithAttributes(attrSystem.String("postgresql"), attrOperation.String(name)))
	return ctx
}

// operationName is the name of the statement. For a statement that sets up or ends a
// transaction, it is the command.
func operationName(text string) string {
	command, _, _ := strings.Cut(text, " ")
	switch command {
	case "begin", "set", "commit", "rollback":
		return command
	}
	return cmp.Or(sql.NameOf(text), composedName)
}

// within returns the current time, measured from the start of the span. A span that
// starts now then lies inside that span, even if the clock was set meanwhile.
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
			kind = refused.Code // its message may contain values
			span.SetAttributes(attrStatus.String(kind))
		}
		span.SetAttributes(attrErrorType.String(kind))
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

package plugin

import (
	"bytes"
	"context"
	"log/slog"
	"math"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
)

// How much of a log record is sent, in bytes.
const (
	maxLogMessage    = 16 << 10
	maxLogAttributes = 16 << 10
)

// Logger returns the logger of the attempt that ctx belongs to. Its records appear
// in the orchestrator's log with the job's id, type, attempt and trace. The last
// 200 of an attempt, or 32 KB, are stored with it.
//
// A record has the ids of the current span as attributes trace_id and span_id: the
// span in the context of InfoContext and the like, or else in ctx.
//
// Logging never waits. When the orchestrator does not keep up, the attempt's oldest
// records are dropped and counted. Outside of an attempt, records go to standard
// error.
func Logger(ctx context.Context) *slog.Logger {
	if a := current(ctx); a != nil {
		return a.logger(trace.SpanContextFromContext(ctx))
	}
	return slog.New(slog.NewTextHandler(stderr, nil))
}

func (a *attempt) logger(span trace.SpanContext) *slog.Logger {
	return slog.New(&logHandler{attempt: a, span: span})
}

// logHandler sends records over the stream, their attributes as one JSON
// object. It holds no lock while it encodes: a value may log, too.
type logHandler struct {
	attempt *attempt
	span    trace.SpanContext
	// within has the calls of WithAttrs and WithGroup, to repeat on the handler
	// that encodes each record.
	within []func(slog.Handler) slog.Handler
}

// Enabled implements slog.Handler. The orchestrator chooses what it logs.
func (h *logHandler) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (h *logHandler) Handle(ctx context.Context, r slog.Record) error {
	attributes, err := h.encode(ctx, r)
	if err != nil {
		return err
	}
	record := &handlerv1.Log{
		Handle: h.attempt.start.GetHandle(), Level: level(r.Level), Message: clean(r.Message, maxLogMessage),
		Attributes: attributes, Time: r.Time.Format(time.RFC3339Nano),
	}
	if len(attributes) > maxLogAttributes {
		record.Attributes = []byte(`{"attributes":"too large"}`)
	}
	h.attempt.session.out.log(h.attempt, record)
	return nil
}

var attributesOnly = &slog.HandlerOptions{
	Level: slog.Level(math.MinInt),
	// Attributes are in a group. Level, message and time are not.
	ReplaceAttr: func(groups []string, attr slog.Attr) slog.Attr {
		if len(groups) == 0 {
			return slog.Attr{}
		}
		return attr
	},
}

// encode returns the attributes as a JSON object; empty when there are none.
func (h *logHandler) encode(ctx context.Context, r slog.Record) ([]byte, error) {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsValid() {
		span = h.span
	}
	if r.NumAttrs() == 0 && len(h.within) == 0 && !span.IsValid() {
		return nil, nil
	}
	var text bytes.Buffer
	encoder := slog.NewJSONHandler(&text, attributesOnly).WithGroup("a")
	if span.IsValid() {
		encoder = encoder.WithAttrs([]slog.Attr{
			slog.String("trace_id", span.TraceID().String()), slog.String("span_id", span.SpanID().String()),
		})
	}
	for _, add := range h.within {
		encoder = add(encoder)
	}
	bare := slog.NewRecord(time.Time{}, r.Level, "", 0)
	r.Attrs(func(attr slog.Attr) bool {
		bare.AddAttrs(attr)
		return true
	})
	if err := encoder.Handle(ctx, bare); err != nil {
		return nil, err
	}
	attributes, found := bytes.CutPrefix(bytes.TrimSpace(text.Bytes()), []byte(`{"a":`))
	if !found {
		return nil, nil
	}
	return bytes.TrimSuffix(attributes, []byte("}")), nil
}

// WithAttrs implements slog.Handler.
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.with(func(inner slog.Handler) slog.Handler { return inner.WithAttrs(attrs) })
}

// WithGroup implements slog.Handler.
func (h *logHandler) WithGroup(name string) slog.Handler {
	return h.with(func(inner slog.Handler) slog.Handler { return inner.WithGroup(name) })
}

func (h *logHandler) with(add func(slog.Handler) slog.Handler) *logHandler {
	return &logHandler{attempt: h.attempt, span: h.span, within: append(h.within[:len(h.within):len(h.within)], add)}
}

func level(l slog.Level) handlerv1.Log_Level {
	switch {
	case l < slog.LevelInfo:
		return handlerv1.Log_LEVEL_DEBUG
	case l < slog.LevelWarn:
		return handlerv1.Log_LEVEL_INFO
	case l < slog.LevelError:
		return handlerv1.Log_LEVEL_WARN
	default:
		return handlerv1.Log_LEVEL_ERROR
	}
}

package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
)

type attemptKey struct{}

func withAttempt(ctx context.Context, a *attempt) context.Context {
	return context.WithValue(ctx, attemptKey{}, a)
}

// Logger returns the logger of the attempt that ctx belongs to. Its records
// appear in the orchestrator's log with the job's id. Logging never waits:
// when the orchestrator does not keep up, records are dropped and counted.
// Outside of an attempt the records go to standard error.
func Logger(ctx context.Context) *slog.Logger {
	a, ok := ctx.Value(attemptKey{}).(*attempt)
	if !ok {
		return slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	return slog.New(&logHandler{handle: a.start.GetHandle(), send: a.session.log})
}

// logHandler sends records over the stream, their attributes as one JSON
// object.
type logHandler struct {
	handle uint64
	send   func(*handlerv1.Log)
	// within holds what WithAttrs and WithGroup have added, to be done again
	// on the handler that encodes each record.
	within []func(slog.Handler) slog.Handler
}

func (h *logHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h *logHandler) Handle(ctx context.Context, r slog.Record) error {
	var attributes bytes.Buffer
	var encoder slog.Handler = slog.NewJSONHandler(&attributes, &slog.HandlerOptions{
		Level: slog.Level(-128), ReplaceAttr: onlyAttributes,
	})
	for _, add := range h.within {
		encoder = add(encoder)
	}
	bare := slog.NewRecord(time.Time{}, r.Level, "", 0)
	r.Attrs(func(attr slog.Attr) bool {
		bare.AddAttrs(attr)
		return true
	})
	if err := encoder.Handle(ctx, bare); err != nil {
		return err
	}
	record := &handlerv1.Log{
		Handle: h.handle, Level: level(r.Level), Message: clean(r.Message), Time: r.Time.Format(time.RFC3339Nano),
	}
	if text := bytes.TrimSpace(attributes.Bytes()); json.Valid(text) && string(text) != "{}" {
		record.Attributes = text
	}
	h.send(record)
	return nil
}

// onlyAttributes leaves out what has a field of its own in the record.
func onlyAttributes(groups []string, attr slog.Attr) slog.Attr {
	if len(groups) == 0 && (attr.Key == slog.LevelKey || attr.Key == slog.MessageKey) && builtIn(attr) {
		return slog.Attr{}
	}
	return attr
}

// builtIn tells the record's own level and empty message from attributes that
// happen to have the same keys.
func builtIn(attr slog.Attr) bool {
	if attr.Key == slog.MessageKey {
		return attr.Value.Kind() == slog.KindString && attr.Value.String() == ""
	}
	_, isLevel := attr.Value.Any().(slog.Level)
	return isLevel
}

func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.with(func(inner slog.Handler) slog.Handler { return inner.WithAttrs(attrs) })
}

func (h *logHandler) WithGroup(name string) slog.Handler {
	return h.with(func(inner slog.Handler) slog.Handler { return inner.WithGroup(name) })
}

func (h *logHandler) with(add func(slog.Handler) slog.Handler) *logHandler {
	return &logHandler{
		handle: h.handle, send: h.send,
		within: append(h.within[:len(h.within):len(h.within)], add),
	}
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

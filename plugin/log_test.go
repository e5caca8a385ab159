package plugin

import (
	"context"
	"encoding/json"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
)

// chatty logs while it is logged.
type chatty struct{ log *slog.Logger }

func (c chatty) LogValue() slog.Value {
	c.log.Debug("from within")
	return slog.StringValue("chatted")
}

func TestLogRecordsReachTheOrchestrator(t *testing.T) {
	cases := map[string]struct {
		log        func(*slog.Logger)
		level      handlerv1.Log_Level
		message    string
		attributes string
	}{
		"bare":             {func(l *slog.Logger) { l.Info("hello") }, handlerv1.Log_LEVEL_INFO, "hello", ``},
		"debug":            {func(l *slog.Logger) { l.Debug("hello") }, handlerv1.Log_LEVEL_DEBUG, "hello", ``},
		"warn":             {func(l *slog.Logger) { l.Warn("hello") }, handlerv1.Log_LEVEL_WARN, "hello", ``},
		"error":            {func(l *slog.Logger) { l.Error("hello") }, handlerv1.Log_LEVEL_ERROR, "hello", ``},
		"below debug":      {func(l *slog.Logger) { l.Log(context.Background(), slog.Level(-20), "hello") }, handlerv1.Log_LEVEL_DEBUG, "hello", ``},
		"attributes":       {func(l *slog.Logger) { l.Info("hello", "n", 1, "s", "x") }, handlerv1.Log_LEVEL_INFO, "hello", `{"n":1,"s":"x"}`},
		"the record's own": {func(l *slog.Logger) { l.Info("hello", "msg", "", "level", slog.LevelInfo, "time", 1) }, handlerv1.Log_LEVEL_INFO, "hello", `{"msg":"","level":"INFO","time":1}`},
		"with and groups":  {func(l *slog.Logger) { l.With("a", 1).WithGroup("g").With("b", 2).Info("hello", "c", 3) }, handlerv1.Log_LEVEL_INFO, "hello", `{"a":1,"g":{"b":2,"c":3}}`},
		"one of two siblings": {func(l *slog.Logger) {
			parent := l.With("a", 1).With("b", 2).With("c", 3)
			first, _ := parent.With("first", 4), parent.With("second", 4)
			first.Info("hello")
		}, handlerv1.Log_LEVEL_INFO, "hello", `{"a":1,"b":2,"c":3,"first":4}`},
		"an empty group": {func(l *slog.Logger) { l.WithGroup("g").Info("hello") }, handlerv1.Log_LEVEL_INFO, "hello", ``},
		"not text":       {func(l *slog.Logger) { l.Info("a\x00\xff", "k", "b\xff") }, handlerv1.Log_LEVEL_INFO, "a\uFFFD\uFFFD", `{"k":"b\ufffd"}`},
		"not JSON":       {func(l *slog.Logger) { l.Info("hello", "k", math.NaN()) }, handlerv1.Log_LEVEL_INFO, "hello", `{"k":"!ERROR:json: unsupported value: NaN"}`},
		"too long": {func(l *slog.Logger) {
			l.Info(strings.Repeat("x", maxLogMessage+1), "k", strings.Repeat("x", maxLogAttributes))
		}, handlerv1.Log_LEVEL_INFO, strings.Repeat("x", maxLogMessage), `{"attributes":"too large"}`},
		"logs while logged": {func(l *slog.Logger) { l.Info("hello", "k", chatty{l}) }, handlerv1.Log_LEVEL_INFO, "hello", `{"k":"chatted"}`},
	}
	var log func(*slog.Logger)
	o := serving(t, Handle("LOG", func(ctx context.Context, _ Job[any]) error {
		log(Logger(ctx))
		return nil
	}))
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			log, o.seen = c.log, nil
			handle := o.start("LOG", `null`)
			o.outcome(handle)
			var records []*handlerv1.Log
			for _, m := range o.seen {
				records = append(records, m.GetLogs()...)
			}
			require.NotEmpty(t, records)
			got := records[len(records)-1]
			require.Equal(t, handle, got.GetHandle())
			require.Equal(t, c.level, got.GetLevel())
			require.Equal(t, c.message, got.GetMessage())
			if c.attributes == "" {
				require.Empty(t, got.GetAttributes())
			} else {
				require.JSONEq(t, c.attributes, string(got.GetAttributes()))
			}
			at, err := time.Parse(time.RFC3339Nano, got.GetTime())
			require.NoError(t, err)
			require.WithinDuration(t, time.Now(), at, time.Minute)
		})
	}
}

func TestAHandlersOwnCancelLeavesItsReasonInTheLog(t *testing.T) {
	o := serving(t, Handle("CANCEL", func(context.Context, Job[any]) error { return Cancel(errPlain) }))
	require.NotNil(t, o.run("CANCEL", `null`).GetCanceled())
	require.JSONEq(t, `{"reason":"no such printer"}`, string(o.seen[0].GetLogs()[0].GetAttributes()))
}

func TestAttributesAreAlwaysJSON(t *testing.T) {
	h := &logHandler{attempt: attemptNo(1)}
	for _, value := range []any{nil, errPlain, make(chan int), json.RawMessage("{"), func() {}, strings.Repeat("\x00", 10), time.Second} {
		r := slog.NewRecord(time.Now(), slog.LevelInfo, "m", 0)
		r.Add("k", value)
		text, err := h.encode(t.Context(), r)
		require.NoError(t, err)
		require.True(t, json.Valid(text), "%s", text)
	}
}

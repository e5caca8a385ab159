package main

import (
	"io"
	"log/slog"
	"os"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/config"
	"golang.org/x/term"
)

// newLog returns a logger for standard error. With log.format "auto" it writes text
// to a terminal and JSON elsewhere.
func newLog(cfg config.Log, stderr io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: cfg.Threshold()}
	if cfg.Format == "text" || cfg.Format == "auto" && isTerminal(stderr) {
		return slog.New(slog.NewTextHandler(stderr, options))
	}
	options.ReplaceAttr = durationWithUnit
	return slog.New(slog.NewJSONHandler(stderr, options))
}

// durationWithUnit writes durations as text instead of as bare nanoseconds.
func durationWithUnit(_ []string, attr slog.Attr) slog.Attr {
	if attr.Value.Kind() == slog.KindDuration {
		return slog.String(attr.Key, attr.Value.Duration().String())
	}
	return attr
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

package main

import (
	"io"
	"log/slog"
	"os"

	"golang.org/x/term"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/config"
	"github.com/holdfast-jobs/holdfast/runtime/job"
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

// inCell makes every line name the cell of the database, if it is one.
func inCell(log *slog.Logger, cell job.Cell) *slog.Logger {
	number, some := cell.Number()
	if !some {
		return log
	}
	return log.With("cell", int(number))
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

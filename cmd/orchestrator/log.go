package main

import (
	"io"
	"log/slog"
	"os"

	"golang.org/x/term"
)

// newLog writes to the program's standard error: text on a terminal, else
// JSON, unless log.format says which. The configuration must be checked.
func newLog(cfg logConfig, stderr io.Writer) *slog.Logger {
	level, err := parseLevel(cfg.Level)
	if err != nil {
		level = slog.LevelInfo
	}
	options := &slog.HandlerOptions{Level: level}
	if cfg.Format == "text" || cfg.Format == "auto" && isTerminal(stderr) {
		return slog.New(slog.NewTextHandler(stderr, options))
	}
	options.ReplaceAttr = durationWithUnit
	return slog.New(slog.NewJSONHandler(stderr, options))
}

// durationWithUnit writes durations as text: JSON would have them as bare
// nanoseconds.
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

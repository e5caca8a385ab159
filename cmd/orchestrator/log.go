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
	return slog.New(slog.NewJSONHandler(stderr, options))
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

package embedded

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
)

const (
	keptLines   = 12
	longestLine = 4 << 10
)

// serverLog logs the lines that the server writes, and keeps the last ones for
// errors.
type serverLog struct {
	log  *slog.Logger
	mu   sync.Mutex
	kept []string
}

// follow reads until the server closes its log.
func (l *serverLog) follow(r io.Reader) {
	lines := bufio.NewReaderSize(r, longestLine)
	for {
		line, _, err := lines.ReadLine()
		if err != nil {
			return
		}
		if len(line) > 0 {
			l.add(string(line))
		}
	}
}

func (l *serverLog) add(line string) {
	l.mu.Lock()
	l.kept = append(l.kept, line)
	l.kept = l.kept[max(0, len(l.kept)-keptLines):]
	l.mu.Unlock()
	severity, text, found := strings.Cut(line, ":  ")
	if !found {
		severity, text = "", line
	}
	l.log.Log(context.Background(), levelOf(severity, text), "postgres", "severity", severity, "text", text)
}

// levelOf returns a low level for lines that every start and stop writes about clients
// that connect too early or stay too long.
func levelOf(severity, text string) slog.Level {
	switch {
	case severity == "PANIC":
		return slog.LevelError
	case severity == "WARNING", severity == "ERROR":
		return slog.LevelWarn
	case severity == "FATAL" && !strings.HasPrefix(text, "terminating ") && !strings.HasPrefix(text, "the database system is "):
		return slog.LevelWarn
	default:
		return slog.LevelDebug
	}
}

func (l *serverLog) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.kept) == 0 {
		return "it wrote nothing"
	}
	return strings.Join(l.kept, "\n")
}

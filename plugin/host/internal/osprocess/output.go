package osprocess

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

const (
	// maxLine is how much of a line of output is kept, in bytes.
	maxLine = 8 << 10
	// lastLines is how many of the last lines of output are kept.
	lastLines = 12
	// maxLastLine is how much of each of those lines is kept, in bytes.
	maxLastLine = 240
	// traceLines is how many lines of a panic are kept.
	traceLines = 24
)

// Lines cuts what is written to it into lines of bounded length. It never holds more than
// one line.
type Lines struct {
	// emit gets each line without its end, cut to maxLine. It must not keep the slice.
	emit    func(line []byte)
	partial []byte
}

func (l *Lines) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			l.keep(p)
			break
		}
		if len(l.partial) == 0 {
			l.emit(p[:min(end, maxLine)])
		} else {
			l.keep(p[:end])
			l.Flush()
		}
		p = p[end+1:]
	}
	return n, nil
}

func (l *Lines) keep(p []byte) {
	l.partial = append(l.partial, p[:min(len(p), maxLine-len(l.partial))]...)
}

// Flush emits a last line without an end.
func (l *Lines) Flush() {
	if len(l.partial) > 0 {
		l.emit(l.partial)
		l.partial = l.partial[:0]
	}
}

// Output receives everything that a process prints. It logs as much as the rate allows,
// and keeps the last lines to explain the process's death.
type Output struct {
	// Log receives records about the process.
	Log *slog.Logger

	linesPerSec int
	mu          sync.Mutex
	second      time.Time
	logged      int
	suppressed  int
	// last are the last lines, and trace those of a panic.
	last, trace []string
}

// NewOutput returns an Output that logs at most that many lines a second.
func NewOutput(log *slog.Logger, linesPerSecond int) *Output {
	return &Output{Log: log, linesPerSec: linesPerSecond}
}

// From returns a writer that logs lines as output of the stream.
func (n *Output) From(stream string) *Lines {
	return &Lines{emit: func(line []byte) { n.print(stream, line) }}
}

func (n *Output) print(stream string, line []byte) {
	line = bytes.TrimRight(line, "\r\n ")
	if len(line) == 0 {
		return
	}
	n.remember(line)
	if n.Allow() {
		n.Log.LogAttrs(context.Background(), slog.LevelInfo, "plugin output",
			slog.String("stream", stream), slog.String("line", string(line)))
	}
}

// Allow reports whether one more record about the process may be logged now.
func (n *Output) Allow() bool {
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	if now.Sub(n.second) >= time.Second {
		n.logSuppressedLocked()
		n.second, n.logged = now, 0
	}
	if n.logged >= n.linesPerSec {
		n.suppressed++
		return false
	}
	n.logged++
	return true
}

// LogSuppressed logs how many lines were not logged.
func (n *Output) LogSuppressed() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.logSuppressedLocked()
}

func (n *Output) logSuppressedLocked() {
	if n.suppressed > 0 {
		n.Log.Warn("plugin output suppressed", "not_logged", n.suppressed)
		n.suppressed = 0
	}
}

func (n *Output) remember(line []byte) {
	kept := string(line[:min(len(line), maxLastLine)])
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last = append(n.last, kept)
	n.last = n.last[max(0, len(n.last)-lastLines):]
	if strings.HasPrefix(kept, "panic: ") || strings.HasPrefix(kept, "fatal error: ") {
		n.trace = append(n.trace[:0], kept)
	} else if len(n.trace) > 0 && len(n.trace) < traceLines {
		n.trace = append(n.trace, kept)
	}
}

// Excerpt returns the panic that the process printed, or else the last lines.
func (n *Output) Excerpt() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.trace) > 0 {
		return strings.Join(n.trace, "\n")
	}
	return strings.Join(n.last, "\n")
}

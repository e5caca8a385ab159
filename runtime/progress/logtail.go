package progress

import (
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// What is kept of an attempt's log: its last lines, as many as fit.
const (
	maxLogLines = 200
	// maxLogBytes bounds messages and attributes of all lines together.
	maxLogBytes = 32 << 10
	// maxLogText bounds the message of a line, and its attributes.
	maxLogText = 4 << 10
)

// saveLogAfter is how long lines gather before they are saved: an orchestrator that
// dies loses no more than that.
const saveLogAfter = time.Second

// logTail is the end of one attempt's log on its way to the ledger.
type logTail struct {
	save func(lines []job.LogLine, dropped int64)

	mu      sync.Mutex
	lines   []job.LogLine // lines that save was given are not changed
	bytes   int
	dropped int64
	// saving is when the lines will be saved; nil when all of them are.
	saving *time.Timer
	ended  bool
}

func newLogTail(save func([]job.LogLine, int64)) *logTail { return &logTail{save: save} }

func (t *logTail) add(line job.LogLine) {
	if text := job.CleanText(line.Message, maxLogText); len(text) < len(line.Message) {
		line.Message, line.Truncated = text, true
	} else {
		line.Message = text
	}
	if len(line.Attributes) > maxLogText {
		line.Attributes, line.Truncated = nil, true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, line)
	t.bytes += textBytes(line)
	t.dropped += int64(line.Dropped)
	for len(t.lines) > maxLogLines || t.bytes > maxLogBytes {
		t.bytes -= textBytes(t.lines[0])
		t.lines = t.lines[1:]
		t.dropped++
	}
	if t.saving == nil && !t.ended {
		t.saving = time.AfterFunc(saveLogAfter, t.flush)
	}
}

func textBytes(line job.LogLine) int { return len(line.Message) + len(line.Attributes) }

func (t *logTail) flush() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.flushLocked()
}

// flushLocked passes the lines on with the mutex held, so that no older ones
// follow.
func (t *logTail) flushLocked() {
	if t.saving == nil || t.ended {
		return
	}
	t.saving = nil
	t.save(t.lines[:len(t.lines):len(t.lines)], t.dropped)
}

// end saves what is not saved yet. Nothing is saved after it.
func (t *logTail) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.saving != nil {
		t.saving.Stop()
	}
	t.flushLocked()
	t.ended = true
}

package progress

import (
	"encoding/json"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Attempt is what one attempt reports, until it is saved. Its methods but Saved are
// called by one goroutine. A nil one has reported nothing.
type Attempt struct {
	tail   *logTail
	buffer *buffer // its mutex guards what follows

	// pending is to be saved next. It is empty when everything is saved, or about to
	// be.
	pending job.Report
	// logSize is the size of the pending log, in bytes.
	logSize int
	// listed says that the attempt is among those running.
	listed bool
	// saving is the size of what is being saved; 0 for nothing.
	saving   int
	savedAt  time.Time
	hasEnded bool
}

// Progress replaces the attempt's progress. It returns nil, or a channel that is
// closed once there is room for more reports of the plugin.
func (a *Attempt) Progress(progress json.RawMessage) (room <-chan struct{}) {
	return a.keep(job.Report{Progress: progress})
}

// Checkpoint replaces the attempt's checkpoint. It returns what Progress does.
func (a *Attempt) Checkpoint(checkpoint json.RawMessage) (room <-chan struct{}) {
	return a.keep(job.Report{Checkpoint: checkpoint})
}

// Log adds a line to the attempt's log.
func (a *Attempt) Log(line job.LogLine) { a.tail.add(line) }

// End makes the recorder save what is left, without waiting for the interval.
// Nothing may be reported after it.
func (a *Attempt) End() {
	if a == nil {
		return
	}
	a.tail.end()
	b := a.buffer
	b.mu.Lock()
	defer b.mu.Unlock()
	a.hasEnded = true
	if a.size() == 0 {
		return
	}
	b.wakeLocked()
	b.ending = append(b.ending, a)
	b.ended.Raise()
}

// Saved returns true when all that the attempt has reported is saved, or cannot be
// saved any more.
func (a *Attempt) Saved() bool {
	if a == nil {
		return true
	}
	a.buffer.mu.Lock()
	defer a.buffer.mu.Unlock()
	return a.size() == 0 && a.saving == 0 || !a.buffer.writing
}

// keep takes what an attempt reports, in place of what it reported before. It returns
// nil, or, when the buffer holds too much, a channel that is closed once there is room.
func (a *Attempt) keep(report job.Report) <-chan struct{} {
	b := a.buffer
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bytes -= a.size()
	if report.Progress != nil {
		a.pending.Progress = report.Progress
	}
	if report.Checkpoint != nil {
		a.pending.Checkpoint = report.Checkpoint
	}
	if report.Log != nil {
		a.pending.Log, a.logSize = report.Log, sizeOfLog(report.Log)
	}
	b.bytes += a.size()
	if !a.listed {
		a.listed = true
		b.running = append(b.running, a)
		b.wakeLocked()
	}
	if b.bytes <= b.recorder.share() {
		return nil
	}
	if b.room == nil {
		b.room = make(chan struct{})
	}
	return b.room
}

// take returns what is pending, and counts it as being saved.
func (a *Attempt) take() taken {
	out := taken{attempt: a, report: a.pending}
	a.saving = a.size()
	a.pending, a.logSize = job.Report{Lease: a.pending.Lease}, 0
	return out
}

// valueOverhead is about what a value or a line takes besides its text, in bytes.
const valueOverhead = 128

// size is about what the pending report takes in memory, in bytes; 0 for an empty one.
func (a *Attempt) size() int {
	size := a.logSize
	if a.pending.Progress != nil {
		size += valueOverhead + len(a.pending.Progress)
	}
	if a.pending.Checkpoint != nil {
		size += valueOverhead + len(a.pending.Checkpoint)
	}
	return size
}

func sizeOfLog(log *job.AttemptLog) int {
	size := valueOverhead
	for _, line := range log.Lines {
		size += valueOverhead + textBytes(line)
	}
	return size
}

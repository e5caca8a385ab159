// Package report saves what attempts report on their way: progress, checkpoints
// and log lines. Of each attempt it keeps only the last of these, and writes an
// attempt that runs at most once an interval.
//
// The plugins do not wait for one another: each has a notebook of its own. When what
// one of them has reported and is not written yet takes too much memory, nothing
// more is read from its processes until it is written.
package report

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// What all notebooks may hold together, in bytes. A plugin has an equal share of it,
// at most a quarter. What is being received when the share is used up comes on top.
const (
	unsavedInAll = 256 << 20
	minShares    = 4
)

// maxWriters is how many notebooks are written at the same time, in the order they
// ask: claims and settlements need connections too.
const maxWriters = 2

// Recorder has a notebook for each plugin.
type Recorder struct {
	// write saves the reports, and returns when trying again is no use.
	write    func([]job.Report)
	saved    loop.Signal
	interval time.Duration
	writers  chan struct{}
	// ctx ends when saving is no longer worth a try.
	ctx context.Context

	mu     sync.Mutex
	books  map[string]*notebook
	closed bool
	loops  sync.WaitGroup
}

// NewRecorder returns a recorder that writes an attempt that runs once an interval,
// with a function that tries until it has saved the reports or trying is no use. It
// raises saved when all reports of an attempt that has ended are saved. It gives up
// when the context ends.
func NewRecorder(ctx context.Context, interval time.Duration, write func([]job.Report), saved loop.Signal) *Recorder {
	return &Recorder{
		write: write, saved: saved, interval: interval, ctx: ctx,
		writers: make(chan struct{}, maxWriters), books: make(map[string]*notebook),
	}
}

// Attempt is what one attempt reports. Its methods but Saved are called by one
// goroutine. A nil one has reported nothing.
type Attempt struct {
	page *page
	tail *logTail
}

// Attempt begins to record an attempt in a process of the plugin.
func (r *Recorder) Attempt(plugin string, lease job.Lease, number int) *Attempt {
	p := &page{book: r.book(plugin), report: job.Report{Lease: lease}}
	return &Attempt{page: p, tail: newLogTail(func(lines []job.LogLine, dropped int64) {
		p.keep(job.Report{Log: &job.AttemptLog{Number: number, Fence: lease.Fence, Lines: lines, Dropped: dropped}})
	})}
}

// Progress replaces the attempt's progress. It returns nil, or a channel that is
// closed once there is room for more reports of the plugin.
func (a *Attempt) Progress(progress json.RawMessage) (room <-chan struct{}) {
	return a.page.keep(job.Report{Progress: progress})
}

// Checkpoint replaces the attempt's checkpoint. It returns what Progress does.
func (a *Attempt) Checkpoint(checkpoint json.RawMessage) (room <-chan struct{}) {
	return a.page.keep(job.Report{Checkpoint: checkpoint})
}

// Log adds a line to the attempt's log.
func (a *Attempt) Log(line job.LogLine) { a.tail.add(line) }

// End makes the recorder save what is left, without waiting for the interval.
// Nothing may be reported after it.
func (a *Attempt) End() {
	if a != nil {
		a.tail.end()
		a.page.end()
	}
}

// Saved returns true when all that the attempt has reported is saved, or cannot be
// saved any more.
func (a *Attempt) Saved() bool { return a == nil || a.page.isSaved() }

// book returns the notebook of the plugin.
func (r *Recorder) book(plugin string) *notebook {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.books[plugin]
	if b == nil {
		b = &notebook{recorder: r, listed: loop.NewSignal(), ended: loop.NewSignal()}
		r.books[plugin] = b
	}
	return b
}

// share is how many bytes a notebook may hold.
func (r *Recorder) share() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return unsavedInAll / max(minShares, len(r.books))
}

// save writes the batch when it is its turn.
func (r *Recorder) save(ctx context.Context, batch []taken) {
	select {
	case r.writers <- struct{}{}:
		defer func() { <-r.writers }()
	case <-ctx.Done():
	}
	reports := make([]job.Report, len(batch))
	for i, t := range batch {
		reports[i] = t.report
	}
	r.write(reports)
}

// start runs a loop, unless the recorder is closed.
func (r *Recorder) start(run func(context.Context)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.loops.Go(func() { run(r.ctx) })
	return true
}

// Close returns when everything is saved, or is not worth a try any more. Nothing is
// saved after it.
func (r *Recorder) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.loops.Wait()
}

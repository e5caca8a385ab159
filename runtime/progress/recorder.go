// Package progress saves what attempts report on their way: progress, checkpoints
// and log lines. Of each attempt it keeps only the last of these, and writes an
// attempt that runs at most once an interval.
//
// The plugins do not wait for one another: each has a buffer of its own. When what
// one of them has reported and is not written yet takes too much memory, nothing
// more is read from its processes until it is written.
package progress

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// What all buffers may hold together, in bytes. A plugin has an equal share of it,
// at most a quarter. What is being received when the share is used up comes on top.
const (
	unsavedInAll = 256 << 20
	minShares    = 4
)

// maxWriters is how many buffers are written at the same time, in the order they
// ask: claims and settlements need connections too.
const maxWriters = 2

// Recorder has a buffer for each plugin.
type Recorder struct {
	// write saves the reports, and returns when trying again is no use.
	write    func([]job.Report)
	saved    loop.Signal
	interval time.Duration
	writers  chan struct{}
	// ctx ends when saving is no longer worth a try.
	ctx context.Context

	mu      sync.Mutex
	buffers map[string]*buffer
	closed  bool
	loops   sync.WaitGroup
}

// NewRecorder returns a recorder that writes an attempt that runs once an interval,
// with a function that tries until it has saved the reports or trying is no use. It
// raises saved when all reports of an attempt that has ended are saved. It gives up
// when the context ends.
func NewRecorder(ctx context.Context, interval time.Duration, write func([]job.Report), saved loop.Signal) *Recorder {
	return &Recorder{
		write: write, saved: saved, interval: interval, ctx: ctx,
		writers: make(chan struct{}, maxWriters), buffers: make(map[string]*buffer),
	}
}

// Attempt begins to record an attempt in a process of the plugin.
func (r *Recorder) Attempt(plugin string, lease job.Lease, number int) *Attempt {
	a := &Attempt{buffer: r.buffer(plugin), pending: job.Report{Lease: lease}}
	a.tail = newLogTail(func(lines []job.LogLine, dropped int64) {
		a.keep(job.Report{Log: &job.AttemptLog{Number: number, Fence: lease.Fence, Lines: lines, Dropped: dropped}})
	})
	return a
}

// buffer returns the buffer of the plugin.
func (r *Recorder) buffer(plugin string) *buffer {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.buffers[plugin]
	if b == nil {
		b = &buffer{recorder: r, listed: loop.NewSignal(), ended: loop.NewSignal()}
		r.buffers[plugin] = b
	}
	return b
}

// share is how many bytes a buffer may hold.
func (r *Recorder) share() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return unsavedInAll / max(minShares, len(r.buffers))
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

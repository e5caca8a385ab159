package progress

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// What one statement of a buffer saves at most. A report that is larger goes alone.
const (
	maxReports     = 200
	maxLogLinesAll = 4000
	maxBytes       = 1 << 20
)

// buffer saves the reports of one plugin's attempts. It stays as small as the
// attempts are few, however often they report.
//
// Attempts that have ended come first. While there are none, the buffer rests after
// each statement for as long as that took, a second at most. An attempt that runs is
// saved at once, and then again only after the interval.
type buffer struct {
	recorder *Recorder
	// listed wakes the writer when there is more to save, ended when an attempt waits
	// to be settled.
	listed, ended loop.Signal

	mu sync.Mutex
	// writing says that a goroutine saves. There is one only while there is
	// something to save.
	writing bool
	// ending and running are the attempts with something to save, those that have
	// ended and the others, in the order they came. One may be in both.
	ending, running []*Attempt
	// bytes is what all attempts hold, saved next or being saved.
	bytes int
	// room is closed when there is room again; nil while there is.
	room chan struct{}
}

// taken is a report that is about to be saved.
type taken struct {
	attempt *Attempt
	report  job.Report
}

// wakeLocked makes sure that somebody saves.
func (b *buffer) wakeLocked() {
	if !b.writing {
		b.writing = b.recorder.start(b.write)
	}
	b.listed.Raise()
}

// write saves until nothing is left to save, or nothing can be saved any more.
func (b *buffer) write(ctx context.Context) {
	for {
		batch, urgent, wait := b.take(time.Now(), ctx.Err() != nil)
		switch {
		case len(batch) > 0:
			began := time.Now()
			b.recorder.save(ctx, batch)
			b.saved(batch)
			if !urgent {
				b.ended.Wait(ctx, min(time.Since(began), time.Second))
			}
		case wait > 0:
			b.listed.Wait(ctx, wait)
		default:
			b.recorder.saved.Raise()
			return
		}
	}
}

// take returns what to save next, and whether an attempt that has ended waits for it
// or for what is left. When it is too early to save anything, it returns how long to
// wait. When nothing is left at all, the writer must end.
func (b *buffer) take(now time.Time, all bool) (batch []taken, urgent bool, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	urgent = len(b.ending) > 0
	var in load
	for len(b.ending) > 0 {
		if a := b.ending[0]; a.size() > 0 {
			if !in.admits(a) {
				break
			}
			batch = append(batch, a.take())
		}
		b.ending = b.ending[1:]
	}
	left := b.running[:0]
	for _, a := range b.running {
		due := a.savedAt.Add(b.recorder.interval).Sub(now)
		switch {
		case a.size() == 0: // taken before
			a.listed = false
		case len(b.ending) == 0 && (due <= 0 || all) && in.admits(a):
			a.listed = false
			batch = append(batch, a.take())
		default:
			left = append(left, a)
			if wait == 0 || due < wait {
				wait = max(due, time.Millisecond)
			}
		}
	}
	clear(b.running[len(left):])
	b.running = left
	b.writing = len(batch)+len(left) > 0
	return batch, urgent, wait
}

// saved counts a batch as saved, and says when there is room again.
func (b *buffer) saved(batch []taken) {
	now := time.Now()
	ended := false
	b.mu.Lock()
	for _, t := range batch {
		a := t.attempt
		b.bytes -= a.saving
		a.saving, a.savedAt = 0, now
		ended = ended || a.hasEnded
	}
	if b.room != nil && b.bytes <= b.recorder.share()/2 {
		close(b.room)
		b.room = nil
	}
	b.mu.Unlock()
	if ended {
		b.recorder.saved.Raise()
	}
}

// load is what a statement is to save.
type load struct{ reports, lines, bytes int }

// admits returns whether the attempt's report fits too, and counts it then. The first one
// always fits.
func (l *load) admits(a *Attempt) bool {
	more := *l
	more.reports++
	more.bytes += a.size()
	if a.pending.Log != nil {
		more.lines += len(a.pending.Log.Lines)
	}
	if l.reports > 0 && (more.reports > maxReports || more.lines > maxLogLinesAll || more.bytes > maxBytes) {
		return false
	}
	*l = more
	return true
}

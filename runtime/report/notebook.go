package report

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// What one statement of a notebook saves at most. A report that is larger goes alone.
const (
	maxReports     = 200
	maxLogLinesAll = 4000
	maxBytes       = 1 << 20
)

// notebook saves the reports of one plugin's attempts. It stays as small as the
// attempts are few, however often they report.
//
// Attempts that have ended come first. While there are none, the notebook rests after
// each statement for as long as that took, a second at most. An attempt that runs is
// saved at once, and then again only after the interval.
type notebook struct {
	recorder *Recorder
	// listed wakes the writer when there is more to save, ended when an attempt waits
	// to be settled.
	listed, ended loop.Signal

	mu sync.Mutex
	// writing says that a goroutine saves. There is one only while there is
	// something to save.
	writing bool
	// ending and running are the pages with something to save, of attempts that
	// have ended and of others, in the order they came. One may be in both.
	ending, running []*page
	// bytes is what all pages hold, saved next or being saved.
	bytes int
	// room is closed when there is room again; nil while there is.
	room chan struct{}
}

// page is what is to be saved of one attempt. Its book's mutex guards it.
type page struct {
	book *notebook
	// report is to be saved next. It is empty when everything is saved, or about to
	// be.
	report job.Report
	// logSize is the size of the report's log, in bytes.
	logSize int
	// listed says that the page is among those running.
	listed bool
	// saving is the size of what is being saved; 0 for nothing.
	saving   int
	savedAt  time.Time
	hasEnded bool
}

// taken is a report that is about to be saved.
type taken struct {
	page   *page
	report job.Report
}

// keep takes what an attempt reports, in place of what it reported before. It returns
// nil, or, when the book holds too much, a channel that is closed once there is room.
func (p *page) keep(report job.Report) <-chan struct{} {
	b := p.book
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bytes -= p.size()
	if report.Progress != nil {
		p.report.Progress = report.Progress
	}
	if report.Checkpoint != nil {
		p.report.Checkpoint = report.Checkpoint
	}
	if report.Log != nil {
		p.report.Log, p.logSize = report.Log, sizeOfLog(report.Log)
	}
	b.bytes += p.size()
	if !p.listed {
		p.listed = true
		b.running = append(b.running, p)
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

// end says that the attempt has ended, so that its page is saved first.
func (p *page) end() {
	b := p.book
	b.mu.Lock()
	defer b.mu.Unlock()
	p.hasEnded = true
	if p.size() == 0 {
		return
	}
	b.wakeLocked()
	b.ending = append(b.ending, p)
	b.ended.Raise()
}

// isSaved also returns true when nobody will save the rest.
func (p *page) isSaved() bool {
	p.book.mu.Lock()
	defer p.book.mu.Unlock()
	return p.size() == 0 && p.saving == 0 || !p.book.writing
}

// wakeLocked makes sure that somebody saves.
func (b *notebook) wakeLocked() {
	if !b.writing {
		b.writing = b.recorder.start(b.write)
	}
	b.listed.Raise()
}

// write saves until nothing is left to save, or nothing can be saved any more.
func (b *notebook) write(ctx context.Context) {
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
func (b *notebook) take(now time.Time, all bool) (batch []taken, urgent bool, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	urgent = len(b.ending) > 0
	var in load
	for len(b.ending) > 0 {
		if p := b.ending[0]; p.size() > 0 {
			if !in.admits(p) {
				break
			}
			batch = append(batch, p.take())
		}
		b.ending = b.ending[1:]
	}
	left := b.running[:0]
	for _, p := range b.running {
		due := p.savedAt.Add(b.recorder.interval).Sub(now)
		switch {
		case p.size() == 0: // taken before
			p.listed = false
		case len(b.ending) == 0 && (due <= 0 || all) && in.admits(p):
			p.listed = false
			batch = append(batch, p.take())
		default:
			left = append(left, p)
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

func (p *page) take() taken {
	out := taken{page: p, report: p.report}
	p.saving = p.size()
	p.report, p.logSize = job.Report{Lease: p.report.Lease}, 0
	return out
}

// saved counts a batch as saved, and says when there is room again.
func (b *notebook) saved(batch []taken) {
	now := time.Now()
	ended := false
	b.mu.Lock()
	for _, t := range batch {
		p := t.page
		b.bytes -= p.saving
		p.saving, p.savedAt = 0, now
		ended = ended || p.hasEnded
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

// admits returns whether the page's report fits too, and counts it then. The first one
// always fits.
func (l *load) admits(p *page) bool {
	more := *l
	more.reports++
	more.bytes += p.size()
	if p.report.Log != nil {
		more.lines += len(p.report.Log.Lines)
	}
	if l.reports > 0 && (more.reports > maxReports || more.lines > maxLogLinesAll || more.bytes > maxBytes) {
		return false
	}
	*l = more
	return true
}

// valueOverhead is about what a value or a line takes besides its text, in bytes.
const valueOverhead = 128

// size is about what the report takes in memory, in bytes; 0 for an empty one.
func (p *page) size() int {
	size := p.logSize
	if p.report.Progress != nil {
		size += valueOverhead + len(p.report.Progress)
	}
	if p.report.Checkpoint != nil {
		size += valueOverhead + len(p.report.Checkpoint)
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

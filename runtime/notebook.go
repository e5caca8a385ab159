package runtime

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// What one statement of a notebook saves at most; a note that is larger goes
// alone.
const (
	notesAtOnce     = 200
	logLinesAtOnce  = 4000
	noteBytesAtOnce = 1 << 20
)

// notebook saves what the attempts of one plugin report on their way: progress,
// checkpoints and logs. Of each attempt it keeps only the last of these, so it
// stays as small as the attempts are many, however often they report. It also
// keeps the end of an attempt with something to save, and hands it on once that
// is saved.
//
// Attempts that have ended come first. While there are none, the notebook rests
// after each statement for as long as that took, a second at most. An attempt
// that runs is saved at once, and then again only after the interval.
type notebook struct {
	shelf *shelf
	// listed wakes the writer when there is more to save, ended when an attempt
	// waits to be settled.
	listed, ended signal

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

// page is what is to be saved of one attempt. Its book guards it.
type page struct {
	book *notebook
	// note is to be saved next. It is empty when all is saved, or about to be.
	note job.Report
	// logSize is what the log of the note takes, in bytes.
	logSize int
	// listed says that the page is among those running.
	listed bool
	// saving is the size of what is being saved; 0 for nothing.
	saving  int
	savedAt time.Time
	// end is nil until the attempt has ended.
	end *end
}

// taken is a note that is about to be saved.
type taken struct {
	page *page
	note job.Report
}

// page returns an empty page for an attempt.
func (b *notebook) page(lease job.Lease) *page {
	return &page{book: b, note: job.Report{Lease: lease}}
}

// keep takes what an attempt reports, in place of what it reported before. It
// returns nil, or a channel that is closed once there is room: what the book
// holds is too much, and the plugin should be heard no further until then.
func (p *page) keep(note job.Report) <-chan struct{} {
	b := p.book
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bytes -= p.size()
	if note.Progress != nil {
		p.note.Progress = note.Progress
	}
	if note.Checkpoint != nil {
		p.note.Checkpoint = note.Checkpoint
	}
	if note.Log != nil {
		p.note.Log, p.logSize = note.Log, sizeOfLog(note.Log)
	}
	b.bytes += p.size()
	if !p.listed {
		p.listed = true
		b.running = append(b.running, p)
		b.wakeLocked()
	}
	if b.bytes <= b.shelf.share() {
		return nil
	}
	if b.room == nil {
		b.room = make(chan struct{})
	}
	return b.room
}

// finish takes the end of the attempt, and hands it on once all is saved.
func (p *page) finish(e *end) {
	b := p.book
	b.mu.Lock()
	unsaved := p.size() > 0
	if unsaved {
		b.wakeLocked()
	}
	waits := (unsaved || p.saving > 0) && b.writing
	if waits {
		p.end = e
	}
	if waits && unsaved {
		b.ending = append(b.ending, p)
		b.ended.raise()
	}
	b.mu.Unlock()
	if !waits {
		b.shelf.settle(e)
	}
}

// wakeLocked sees to it that somebody saves.
func (b *notebook) wakeLocked() {
	if !b.writing {
		b.writing = b.shelf.start(b.write)
	}
	b.listed.raise()
}

// write saves until there is nothing left to save. Once nothing can be saved any
// more, it hands on the ends that wait.
func (b *notebook) write(ctx context.Context) {
	for {
		batch, urgent, wait := b.take(time.Now(), ctx.Err() != nil)
		switch {
		case len(batch) > 0:
			began := time.Now()
			b.shelf.save(ctx, batch)
			b.saved(batch)
			if !urgent {
				b.ended.wait(ctx, min(time.Since(began), time.Second))
			}
		case wait > 0:
			b.listed.wait(ctx, wait)
		default:
			return
		}
	}
}

// take returns what is to be saved next, and whether an attempt waits to be
// settled for it or for what is left. When nothing is to be saved yet, it
// returns how long to wait; when nothing is left at all, the writer must end.
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
		due := p.savedAt.Add(b.shelf.interval).Sub(now)
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
	out := taken{page: p, note: p.note}
	p.saving = p.size()
	p.note, p.logSize = job.Report{Lease: p.note.Lease}, 0
	return out
}

// saved hands on the ends of attempts of which all is saved, and says when there
// is room again.
func (b *notebook) saved(batch []taken) {
	now := time.Now()
	var ends []*end
	b.mu.Lock()
	for _, t := range batch {
		p := t.page
		b.bytes -= p.saving
		p.saving, p.savedAt = 0, now
		if p.end != nil && p.size() == 0 {
			ends = append(ends, p.end)
			p.end = nil
		}
	}
	if b.room != nil && b.bytes <= b.shelf.share()/2 {
		close(b.room)
		b.room = nil
	}
	b.mu.Unlock()
	for _, e := range ends {
		b.shelf.settle(e)
	}
}

// load is what a statement is to save.
type load struct{ notes, lines, bytes int }

// admits reports whether the page's note fits too, and counts it then. The first
// one always does.
func (l *load) admits(p *page) bool {
	more := *l
	more.notes++
	more.bytes += p.size()
	if p.note.Log != nil {
		more.lines += len(p.note.Log.Lines)
	}
	if l.notes > 0 && (more.notes > notesAtOnce || more.lines > logLinesAtOnce || more.bytes > noteBytesAtOnce) {
		return false
	}
	*l = more
	return true
}

// noteOverhead is about what a value or a line takes beside its text, in bytes.
const noteOverhead = 128

// size is about what the note takes in memory, in bytes; 0 for an empty one.
func (p *page) size() int {
	size := p.logSize
	if p.note.Progress != nil {
		size += noteOverhead + len(p.note.Progress)
	}
	if p.note.Checkpoint != nil {
		size += noteOverhead + len(p.note.Checkpoint)
	}
	return size
}

func sizeOfLog(log *job.AttemptLog) int {
	size := noteOverhead
	for _, line := range log.Lines {
		size += noteOverhead + textBytes(line)
	}
	return size
}

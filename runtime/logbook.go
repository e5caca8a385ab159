package runtime

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// What one statement of the logbook saves at most; a log that is larger goes
// alone.
const (
	logsAtOnce     = 100
	logLinesAtOnce = 4000
	logBytesAtOnce = 512 << 10
)

// logbook saves what attempts log, in a loop of its own: a handler that logs much
// must not keep others from being settled. It keeps the last log of each attempt,
// and the end of one that is not saved yet, which it hands on when the log is.
//
// Attempts that wait to be settled come first. While there are none, it rests for as
// long as a statement took, a second at most; what is logged meanwhile replaces what
// was to be saved.
type logbook struct {
	save   func([]job.Note)
	settle func(*end)
	added  signal
	ended  signal // an attempt waits to be settled

	mu    sync.Mutex
	pages map[job.LeaseID]*page
	// ending and running are the pages with something to save, of attempts that
	// have ended and of others, in the order they came. One may be in both.
	ending, running []*page
}

// page is what is to be saved of one attempt.
type page struct {
	lease job.LeaseID
	note  *job.Note // nil when all is saved, or about to be
	end   *end      // nil until the attempt has ended
}

func newLogbook(save func([]job.Note), settle func(*end)) *logbook {
	return &logbook{save: save, settle: settle, added: newSignal(), ended: newSignal(), pages: make(map[job.LeaseID]*page)}
}

// keep takes the last lines of an attempt, in place of those it took before.
func (l *logbook) keep(note job.Note) {
	l.mu.Lock()
	p := l.pages[note.ID]
	if p == nil {
		p = &page{lease: note.ID}
		l.pages[note.ID] = p
	}
	if p.note == nil {
		l.running = append(l.running, p)
	}
	p.note = &note
	l.mu.Unlock()
	l.added.raise()
}

// end takes the end of an attempt, and hands it on once its log is saved.
func (l *logbook) end(e *end) {
	l.mu.Lock()
	p := l.pages[e.settlement.Lease.ID]
	if p != nil {
		p.end = e
		l.ending = append(l.ending, p)
	}
	l.mu.Unlock()
	if p == nil {
		l.settle(e)
		return
	}
	l.ended.raise()
	l.added.raise()
}

// run saves until the context ends, and then what was left.
func (l *logbook) run(ctx context.Context) {
	for l.added.wait(ctx, time.Hour) {
		l.flush(ctx)
	}
	l.flush(ctx)
}

// flush saves all there is, part by part.
func (l *logbook) flush(ctx context.Context) {
	for {
		began := time.Now()
		pages, notes, urgent := l.take()
		if len(notes) == 0 {
			return
		}
		l.save(notes)
		l.saved(pages)
		if !urgent {
			l.ended.wait(ctx, min(time.Since(began), time.Second))
		}
	}
}

// take returns what is to be saved next, and whether an attempt waits to be settled
// for it, or for what is left.
func (l *logbook) take() (pages []*page, notes []job.Note, urgent bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	urgent = len(l.ending) > 0
	lines, bytes := 0, 0
	from := func(queue []*page) []*page {
		for i, p := range queue {
			if p.note == nil {
				continue // taken before
			}
			lines += len(p.note.Log.Lines)
			for _, line := range p.note.Log.Lines {
				bytes += textBytes(line)
			}
			if len(notes) == logsAtOnce || (len(notes) > 0 && (lines > logLinesAtOnce || bytes > logBytesAtOnce)) {
				return queue[i:]
			}
			pages, notes = append(pages, p), append(notes, *p.note)
			p.note = nil
		}
		return nil
	}
	if l.ending = from(l.ending); len(l.ending) == 0 {
		l.running = from(l.running)
	}
	return pages, notes, urgent
}

// saved forgets pages on which nothing has been written since, and hands on the ends
// of their attempts.
func (l *logbook) saved(pages []*page) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range pages {
		if p.note != nil {
			continue
		}
		delete(l.pages, p.lease)
		if p.end != nil {
			l.settle(p.end)
		}
	}
}

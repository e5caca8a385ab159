// Package plugins tells the database, and so all orchestrators, what happens to the plugins
// of this one. The plugin host never waits for that.
package plugins

import (
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	// maxWaiting is how many events wait for the database. If there are more, the oldest are
	// dropped and counted.
	maxWaiting = 1000
	// keptEach is how many events of a kind are kept in a period for each plugin, if processes
	// cause them. Of others, which swaps and operators cause, it is keptOthers. The last of the
	// rest stands for all of it, when the period is over.
	keptEach   = 5
	keptOthers = 30
	keptPeriod = time.Minute
)

// keptOf is how many events of the kind are kept in a period.
func keptOf(event job.PluginEventKind) int {
	switch event {
	case job.PluginCrashed, job.PluginKilled, job.PluginLaunchFailed, job.PluginBroke, job.PluginMended:
		return keptEach
	default:
		return keptOthers
	}
}

// Journal holds what has happened to plugins until the database has it. It takes no more
// than so many events, and never blocks.
type Journal struct {
	// added wakes the recorder, and told the describer.
	added, told loop.Signal

	mu      sync.Mutex
	waiting []job.PluginEvent // oldest first
	lost    int
	bursts  map[kind]*burst
}

// kind is what a burst consists of.
type kind struct {
	plugin string
	event  job.PluginEventKind
}

// burst is the events of a kind in one period.
type burst struct {
	began time.Time
	kept  int
	// more stands for those that were not kept; nil if there are none.
	more *job.PluginEvent
}

// NewJournal returns an empty journal.
func NewJournal() *Journal {
	return &Journal{added: loop.NewSignal(), told: loop.NewSignal(), bursts: make(map[kind]*burst)}
}

// Add adds an event.
func (j *Journal) Add(e job.PluginEvent) {
	e.Count = max(e.Count, 1)
	j.told.Raise()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.endBursts(e.At)
	of := kind{e.Plugin, e.Event}
	b := j.bursts[of]
	if b == nil {
		b = &burst{began: e.At}
		j.bursts[of] = b
	}
	if b.kept < keptOf(e.Event) {
		b.kept++
		j.keep(e)
		j.added.Raise()
		return
	}
	if b.more != nil {
		e.Count += b.more.Count
	}
	b.more = &e
}

// endBursts keeps what stands for the rest of each burst whose period is over. The journal is
// locked.
func (j *Journal) endBursts(now time.Time) {
	for of, b := range j.bursts {
		if now.Sub(b.began) < keptPeriod {
			continue
		}
		delete(j.bursts, of)
		if b.more != nil {
			j.keep(*b.more)
			j.added.Raise()
		}
	}
}

// keep puts the event at the end of those that wait, under an id of its own. The journal is
// locked.
func (j *Journal) keep(e job.PluginEvent) {
	id, err := uuid.NewV7()
	if err != nil {
		j.lost += e.Count
		return
	}
	e.ID = job.ID(id)
	j.waiting = append(j.waiting, e)
	j.trim()
}

func (j *Journal) trim() {
	over := max(len(j.waiting)-maxWaiting, 0)
	for _, e := range j.waiting[:over] {
		j.lost += e.Count
	}
	j.waiting = j.waiting[over:]
}

// take removes up to limit events, the oldest first. If some were dropped, the first of what
// it returns says how many.
func (j *Journal) take(limit int, now time.Time) []job.PluginEvent {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.endBursts(now)
	n := min(limit, len(j.waiting))
	taken := append([]job.PluginEvent(nil), j.waiting[:n]...)
	j.waiting = j.waiting[n:]
	if j.lost > 0 {
		if id, err := uuid.NewV7(); err == nil {
			gap := job.PluginEvent{ID: job.ID(id), At: now, Event: job.PluginEventsLost, Count: j.lost}
			gap.Reason = "the database did not answer, and too many events were waiting for it"
			taken, j.lost = append([]job.PluginEvent{gap}, taken...), 0
		}
	}
	return taken
}

// giveBack returns events that could not be written. Their ids stay the same, so that those
// that were written after all are not written twice.
func (j *Journal) giveBack(events []job.PluginEvent) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.waiting = append(events, j.waiting...)
	j.trim()
}

package store

import (
	"bytes"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// markLife and longestMarkLife bound how long a mark is trusted before its
// urgency is looked through from the beginning again. A job that enters the order
// behind a mark (a commit that came late, a job given back to its old place)
// waits at most so long. A look that took long is repeated less often, so that
// all of them together take a fiftieth of the time.
const (
	markLife        = time.Second
	longestMarkLife = 10 * time.Second
	markLifePerLook = 50
)

// markSlack and markTrail are how far a mark stays behind the last job claimed:
// so long, or so many jobs, whichever is less. Submissions that commit out of
// order by less than this do not wait at all. Each of the jobs may have left a
// dead entry that every claim passes.
const (
	markSlack = time.Second
	markTrail = 4096
)

// maxMarks bounds the marks of one type, and so the stretches that a claim
// looks through. A type with more urgencies in use goes without marks.
const maxMarks = 8

// marks remembers, for each type and urgency, the place in the order that every
// job before is believed to have been claimed from. Without it a claim starts at
// the beginning of the index, over the dead entries of all jobs claimed since
// vacuum could last remove any; while an old snapshot holds vacuum back, that
// grows without bound.
type marks struct {
	mu     sync.Mutex
	byType map[string]map[int16]*mark
}

func newMarks() marks { return marks{byType: make(map[string]map[int16]*mark)} }

// mark is what is known of one type's jobs of one urgency.
type mark struct {
	place
	next     place     // where the mark goes when as many jobs as it trails are behind
	since    int       // jobs claimed after next
	searched time.Time // when all was last looked through; by the local clock, for life only
	life     time.Duration
}

// place is one in the order of an urgency. The zero place is the beginning.
type place struct {
	runAt time.Time
	id    job.ID
}

func placeOf(c job.Claimed) place { return place{runAt: c.RunAt, id: c.JobID} }

func (p place) before(other place) bool {
	if !p.runAt.Equal(other.runAt) {
		return p.runAt.Before(other.runAt)
	}
	return bytes.Compare(p.id[:], other.id[:]) < 0
}

// due is the place's due time as the database orders it.
func (p place) due() pgtype.Timestamptz {
	if p.runAt.IsZero() {
		return pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}
	}
	return instant(p.runAt)
}

// pass moves the mark on, now that a job is claimed.
func (m *mark) pass(claimed place) {
	if earlier := (place{runAt: claimed.runAt.Add(-markSlack)}); m.before(earlier) {
		m.place = earlier
	}
	if m.since++; m.since < markTrail {
		return
	}
	if m.before(m.next) {
		m.place = m.next
	}
	m.next, m.since = claimed, 0
}

// stretch is a part of one type's order: from a place of one urgency up to
// another urgency, which is not part of it.
type stretch struct {
	jobType string
	urgency int16
	from    place
	until   int32
}

// everything is the whole order of a type.
func everything(jobType string) stretch {
	return stretch{jobType: jobType, urgency: math.MinInt16, until: math.MaxInt16 + 1}
}

// search is what one claim looks through.
type search struct {
	stretches []stretch
	whole     []stretch // those of them that begin before a mark that is known
	began     time.Time
}

// search returns what is left of the types' orders between the marks.
func (m *marks) search(types []string, now time.Time) search {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := search{stretches: make([]stretch, 0, len(types)), began: now}
	for _, jobType := range types {
		known := m.byType[jobType]
		next := everything(jobType)
		for _, urgency := range slices.Sorted(maps.Keys(known)) {
			before := next
			before.until = int32(urgency)
			s.stretches = append(s.stretches, before)
			next.urgency, next.from = urgency, known[urgency].place
			if now.Sub(known[urgency].searched) > known[urgency].life {
				next.from = place{}
				s.whole = append(s.whole, next)
			}
		}
		s.stretches = append(s.stretches, next)
	}
	return s
}

// found learns what a search for up to limit jobs brought, most urgent first.
func (m *marks) found(s search, claimed []job.Claimed, limit int, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.trust(s, claimed, limit, now)
	for _, c := range claimed {
		known := m.byType[c.Type]
		if known == nil {
			known = make(map[int16]*mark)
			m.byType[c.Type] = known
		}
		if known[-c.Priority] == nil {
			known[-c.Priority] = &mark{searched: now, life: markLife}
		}
		known[-c.Priority].pass(placeOf(c))
		if len(known) > maxMarks {
			clear(known)
		}
	}
}

// trust renews the marks that the search has looked behind. Where it ended before
// the mark, the mark goes back to its end.
func (m *marks) trust(s search, claimed []job.Claimed, limit int, now time.Time) {
	for _, part := range s.whole {
		known := m.byType[part.jobType][part.urgency]
		if known == nil {
			continue
		}
		if len(claimed) > 0 && len(claimed) >= limit {
			last := claimed[len(claimed)-1]
			if -last.Priority < part.urgency {
				continue // the search did not come so far
			}
			if end := placeOf(last); -last.Priority == part.urgency && end.before(known.place) {
				known.place, known.next, known.since = end, place{}, 0
			}
		}
		known.searched = now
		known.life = min(max(markLifePerLook*now.Sub(s.began), markLife), longestMarkLife)
	}
}

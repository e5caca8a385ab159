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

// markLife and longestMarkLife bound how long a mark is trusted before somebody
// looks for a job before it. One that enters the order there (a commit that came
// late, a job given back to its old place) waits at most so long while jobs are
// claimed, and until the next claim where there are none. A look that took long is
// repeated less often, so that all of them together take a fiftieth of the time.
const (
	markLife        = time.Second
	longestMarkLife = 10 * time.Second
	lifePerLook     = 50
)

// markSlack and markTrail are how far a mark stays behind the last job claimed:
// so long, or so many jobs, whichever is less. Submissions that commit out of
// order by less than this do not wait at all. Each of the jobs may have left a
// dead entry that every claim passes.
const (
	markSlack = time.Second
	markTrail = 4096
)

// maxMarks bounds the marks of one type, and so the stretches that a claim looks
// through. A type with more urgencies in use goes without for crowdedFor.
const (
	maxMarks   = 8
	crowdedFor = time.Minute
)

// marks remembers, for each type and urgency, the place in the order that every
// job before is believed to have been claimed from. Without it a claim starts at
// the beginning of the index, over the dead entries of all jobs claimed since
// vacuum could last remove any; while an old snapshot holds vacuum back, that
// grows without bound.
type marks struct {
	mu      sync.Mutex
	byType  map[string]map[int16]*mark
	crowded map[string]time.Time // since when a type goes without
}

func newMarks() marks {
	return marks{byType: make(map[string]map[int16]*mark), crowded: make(map[string]time.Time)}
}

// mark is what is known of one type's jobs of one urgency. Its times are by the
// local clock.
type mark struct {
	place
	next   place // the first of the places claimed since it was set: where the mark goes
	passed int   // jobs claimed since then
	looked time.Time
	took   time.Duration // the last look
}

// due says whether it is time to look behind the mark. A claim that found nothing
// may look at any time, but for what that costs.
func (m *mark) due(now time.Time, idle bool) bool {
	rest := lifePerLook * m.took
	if !idle {
		rest = min(max(rest, markLife), longestMarkLife)
	}
	return !m.runAt.IsZero() && now.Sub(m.looked) > rest
}

// place is one in the order of an urgency. The zero place is the beginning.
type place struct {
	runAt time.Time
	id    job.ID
}

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
	if m.passed == 0 || claimed.before(m.next) {
		m.next = claimed
	}
	if m.passed++; m.passed < markTrail {
		return
	}
	if m.before(m.next) {
		m.place = m.next
	}
	m.passed = 0
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

// stretches returns what is left of the types' orders between the marks.
func (m *marks) stretches(types []string) []stretch {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]stretch, 0, len(types))
	for _, jobType := range types {
		next := everything(jobType)
		for _, urgency := range slices.Sorted(maps.Keys(m.byType[jobType])) {
			before := next
			before.until = int32(urgency)
			all = append(all, before)
			next.urgency, next.from = urgency, m.byType[jobType][urgency].place
		}
		all = append(all, next)
	}
	return all
}

// claimed moves the marks on.
func (m *marks) claimed(jobs []job.Claimed, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range jobs {
		if now.Sub(m.crowded[c.Type]) < crowdedFor {
			continue
		}
		known := m.byType[c.Type]
		if known == nil {
			known = make(map[int16]*mark)
			m.byType[c.Type] = known
		}
		if known[-c.Priority] == nil {
			known[-c.Priority] = &mark{}
		}
		known[-c.Priority].pass(place{runAt: c.RunAt, id: c.JobID})
		if len(known) > maxMarks {
			delete(m.byType, c.Type)
			m.crowded[c.Type] = now
		}
	}
}

// glance is a mark to look behind.
type glance struct {
	jobType string
	urgency int16
	before  place
}

// due returns the marks of the types that it is time to look behind.
func (m *marks) due(types []string, now time.Time, idle bool) (all []glance) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, jobType := range types {
		for urgency, known := range m.byType[jobType] {
			if known.due(now, idle) {
				all = append(all, glance{jobType: jobType, urgency: urgency, before: known.place})
			}
		}
	}
	return all
}

// looked learns which job waits first before a mark, if any does, and how long
// the look took. It reports whether the mark went back.
func (m *marks) looked(at glance, waiting *place, took time.Duration, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.byType[at.jobType][at.urgency]
	if known == nil {
		return false
	}
	known.looked, known.took = now, took
	if waiting == nil || !waiting.before(known.place) {
		return false
	}
	known.place, known.passed = *waiting, 0
	return true
}

package store

import (
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// markLife bounds how long marks are trusted. A job that enters the order
// behind a mark (a commit that came late, a job given back to its old place)
// waits at most so long.
const markLife = time.Second

// markSlack is how far a mark stays behind the last job claimed. Submissions
// that commit out of order by less than this do not wait at all.
const markSlack = time.Second

// maxMarks bounds the marks of one type, and so the stretches that a claim
// looks through. A type with more urgencies in use goes without marks.
const maxMarks = 8

// marks remembers, for each type and urgency, the due time that every job
// before is believed to have been claimed from. Without it a claim starts at
// the beginning of the index, over the dead entries of all jobs claimed since
// vacuum could last remove any; while an old snapshot holds vacuum back, that
// grows without bound.
type marks struct {
	mu     sync.Mutex
	byType map[string]typeMarks
}

type typeMarks struct {
	set       time.Time // when the first was; by the local clock, for markLife only
	byUrgency map[int16]time.Time
}

func newMarks() marks { return marks{byType: make(map[string]typeMarks)} }

// stretch is a part of one type's order: from a due time of one urgency up to
// another urgency, which is not part of it.
type stretch struct {
	jobType string
	urgency int16
	runAt   pgtype.Timestamptz
	until   int32
}

// everything is the whole order of a type.
func everything(jobType string) stretch {
	return stretch{
		jobType: jobType, urgency: math.MinInt16, until: math.MaxInt16 + 1,
		runAt: pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true},
	}
}

// stretches returns what is left of the types' orders between the marks.
func (m *marks) stretches(types []string, now time.Time) []stretch {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]stretch, 0, len(types))
	for _, jobType := range types {
		known := m.byType[jobType]
		if now.Sub(known.set) > markLife {
			delete(m.byType, jobType)
			known = typeMarks{}
		}
		next := everything(jobType)
		for _, urgency := range slices.Sorted(maps.Keys(known.byUrgency)) {
			before := next
			before.until = int32(urgency)
			next.urgency = urgency
			next.runAt = pgtype.Timestamptz{Time: known.byUrgency[urgency], Valid: true}
			all = append(all, before)
		}
		all = append(all, next)
	}
	return all
}

// advance moves the marks to just before the last of the claimed jobs. Marks
// keep their age: those of a type are forgotten markLife after the first of
// them was set.
func (m *marks) advance(claimed []job.Claimed, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range claimed {
		known, ok := m.byType[c.Type]
		if !ok {
			known = typeMarks{set: now, byUrgency: make(map[int16]time.Time)}
			m.byType[c.Type] = known
		}
		if at := c.RunAt.Add(-markSlack); at.After(known.byUrgency[-c.Priority]) {
			known.byUrgency[-c.Priority] = at
		}
		if len(known.byUrgency) > maxMarks {
			clear(known.byUrgency)
		}
	}
}

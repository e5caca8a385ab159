package store

import (
	"math"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// markLife bounds how long a mark is trusted. A job that enters the order
// behind the mark (a commit that came late, a job given back to its old place)
// waits at most so long.
const markLife = time.Second

// markSlack is how far a mark stays behind the last job claimed. Submissions
// that commit out of order by less than this do not wait at all.
const markSlack = time.Second

// mark is a place in one type's order that every job before it is believed
// to have been claimed from.
type mark struct {
	urgency int16
	runAt   pgtype.Timestamptz
	set     time.Time // by the local clock; for markLife only
}

// theBeginning is a mark before every job.
var theBeginning = mark{
	urgency: math.MinInt16,
	runAt:   pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true},
}

// marks remembers the mark of each type. Without them a claim starts at the
// beginning of the index, over the dead entries of all jobs claimed since
// vacuum could last remove any; while an old snapshot holds vacuum back, that
// grows without bound.
type marks struct {
	mu     sync.Mutex
	byType map[string]mark
}

func newMarks() marks { return marks{byType: make(map[string]mark)} }

// of returns a mark for each type, in the same order.
func (m *marks) of(types []string, now time.Time) []mark {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := make([]mark, len(types))
	for i, jobType := range types {
		known, ok := m.byType[jobType]
		if !ok || now.Sub(known.set) > markLife {
			delete(m.byType, jobType)
			known = theBeginning
		}
		found[i] = known
	}
	return found
}

// advance moves the marks of the claimed jobs' types to just before the last
// of them. A mark keeps its age: it is forgotten markLife after it was first
// set.
func (m *marks) advance(claimed []job.Claimed, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range claimed {
		set := now
		if known, ok := m.byType[c.Type]; ok {
			set = known.set
		}
		m.byType[c.Type] = mark{
			urgency: -c.Priority,
			runAt:   pgtype.Timestamptz{Time: c.RunAt.Add(-markSlack), Valid: true},
			set:     set,
		}
	}
}

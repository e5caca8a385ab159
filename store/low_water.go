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
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// minMarkLife and maxMarkLife limit how long a mark is trusted before a claim looks
// for jobs below it. A job can enter the queue there because its commit came late, or
// because it was released to its old position. While jobs are claimed, it waits at
// most this long; otherwise, until the next claim. A look that took long is repeated
// less often: all looks together take at most a fiftieth of the time.
const (
	minMarkLife = time.Second
	maxMarkLife = 10 * time.Second
	lifePerLook = 50
)

// markSlack and markTrail are how far a mark stays behind the last claimed job: in
// time, or in jobs, whichever is less. Submissions that commit out of order by less
// than this do not wait at all. Each of these jobs may have left a dead index entry
// that every claim passes.
const (
	markSlack = time.Second
	markTrail = 4096
)

// maxMarks limits the marks of one type, and so the ranges that a claim searches.
// A type that uses more urgencies has no marks for crowdedFor.
const (
	maxMarks   = 8
	crowdedFor = time.Minute
)

// lowWaterMarks remembers, for each type and urgency, the position in the queue
// below which we believe every job has been claimed. Without marks, a claim starts
// at the beginning of the index and passes the dead entries of all jobs claimed
// since vacuum could last remove any. While an old snapshot blocks vacuum, their
// number grows without limit.
type lowWaterMarks struct {
	mu      sync.Mutex
	byType  map[string]map[int16]*mark
	crowded map[string]time.Time // when a type last had too many urgencies
}

func newLowWaterMarks() lowWaterMarks {
	return lowWaterMarks{byType: make(map[string]map[int16]*mark), crowded: make(map[string]time.Time)}
}

// mark is the low-water mark of one type and urgency. Its times are by the local
// clock.
type mark struct {
	position
	next   position // the lowest position claimed since the mark was set: where the mark moves next
	passed int      // how many jobs were claimed since then
	looked time.Time
	took   time.Duration // how long the last look took
}

// due reports whether it is time to look below the mark. A claim that found
// nothing (idle) may look at any time, but no more often than lifePerLook allows.
func (m *mark) due(now time.Time, idle bool) bool {
	rest := lifePerLook * m.took
	if !idle {
		rest = min(max(rest, minMarkLife), maxMarkLife)
	}
	return !m.runAt.IsZero() && now.Sub(m.looked) > rest
}

// pass moves the mark up after a job was claimed.
func (m *mark) pass(claimed position) {
	if earlier := (position{runAt: claimed.runAt.Add(-markSlack)}); m.before(earlier) {
		m.position = earlier
	}
	if m.passed == 0 || claimed.before(m.next) {
		m.next = claimed
	}
	if m.passed++; m.passed < markTrail {
		return
	}
	if m.before(m.next) {
		m.position = m.next
	}
	m.passed = 0
}

// position is one in the queue of a type and urgency. The zero value is the
// beginning.
type position struct {
	runAt time.Time
	id    job.ID
}

func (p position) before(other position) bool {
	if !p.runAt.Equal(other.runAt) {
		return p.runAt.Before(other.runAt)
	}
	return bytes.Compare(p.id[:], other.id[:]) < 0
}

// due is the position's due time as the database orders it.
func (p position) due() pgtype.Timestamptz {
	if p.runAt.IsZero() {
		return pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}
	}
	return postgres.Instant(p.runAt)
}

// queueRange is a part of one type's queue: from a position of one urgency up to,
// but not including, another urgency.
type queueRange struct {
	jobType string
	urgency int16
	from    position
	until   int32
}

// everything is the whole queue of a type.
func everything(jobType string) queueRange {
	return queueRange{jobType: jobType, urgency: math.MinInt16, until: math.MaxInt16 + 1}
}

// ranges returns the parts of the types' queues that a claim must search.
func (m *lowWaterMarks) ranges(types []string) []queueRange {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]queueRange, 0, len(types))
	for _, jobType := range types {
		next := everything(jobType)
		for _, urgency := range slices.Sorted(maps.Keys(m.byType[jobType])) {
			before := next
			before.until = int32(urgency)
			all = append(all, before)
			next.urgency, next.from = urgency, m.byType[jobType][urgency].position
		}
		all = append(all, next)
	}
	return all
}

// claimed moves the marks up.
func (m *lowWaterMarks) claimed(jobs []job.Claimed, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range jobs {
		c := &jobs[i]
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
		known[-c.Priority].pass(position{runAt: c.Position(), id: c.JobID})
		if len(known) > maxMarks {
			delete(m.byType, c.Type)
			m.crowded[c.Type] = now
		}
	}
}

// admitted moves the mark back to a job that was put into the queue below it. A job that
// has waited at a gate is often older than those that are claimed.
func (m *lowWaterMarks) admitted(jobType string, urgency int16, at position) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.byType[jobType][urgency]; known != nil && at.before(known.position) {
		known.position, known.passed = at, 0
	}
}

// lowWaterMark is where a mark is.
type lowWaterMark struct {
	jobType string
	urgency int16
	at      position
}

// due returns the marks of the types that it is time to look below.
func (m *lowWaterMarks) due(types []string, now time.Time, idle bool) (all []lowWaterMark) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, jobType := range types {
		for urgency, known := range m.byType[jobType] {
			if known.due(now, idle) {
				all = append(all, lowWaterMark{jobType: jobType, urgency: urgency, at: known.position})
			}
		}
	}
	return all
}

// looked records the result of a look: the first job that waits below the mark, if
// there is one, and how long it took. It reports whether the mark moved back.
func (m *lowWaterMarks) looked(below lowWaterMark, waiting *position, took time.Duration, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.byType[below.jobType][below.urgency]
	if known == nil {
		return false
	}
	known.looked, known.took = now, took
	if waiting == nil || !waiting.before(known.position) {
		return false
	}
	known.position, known.passed = *waiting, 0
	return true
}

package store

import (
	"cmp"
	"encoding/binary"
	mathrand "math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func claimedAt(runAt time.Time, priority int16, n int) job.Claimed {
	c := job.Claimed{Type: jobType, Priority: priority, RunAt: runAt}
	binary.BigEndian.PutUint32(c.JobID[:], uint32(n))
	return c
}

func TestMarksLeaveNoGapInTheOrder(t *testing.T) {
	m := newLowWaterMarks()
	now := time.Now()
	m.claimed([]job.Claimed{
		claimedAt(now, 5, 1), claimedAt(now, 0, 2), claimedAt(now.Add(time.Hour), 0, 3), claimedAt(now, 0, 4),
	}, now)
	require.Equal(t, []queueRange{
		{jobType: jobType, urgency: everything(jobType).urgency, until: -5},
		{jobType: jobType, urgency: -5, from: position{runAt: now.Add(-markSlack)}, until: 0},
		{jobType: jobType, urgency: 0, from: position{runAt: now.Add(time.Hour - markSlack)}, until: everything(jobType).until},
		everything("OTHER"),
	}, m.ranges([]string{jobType, "OTHER"}))
}

func TestATypeWithManyUrgenciesGoesWithoutMarksForAWhile(t *testing.T) {
	m := newLowWaterMarks()
	now := time.Now()
	all := make([]job.Claimed, maxMarks+1)
	for i := range all {
		all[i] = claimedAt(now, int16(i), i)
	}
	m.claimed(all, now)
	m.claimed(all[:2], now.Add(crowdedFor-1))
	require.Equal(t, []queueRange{everything(jobType)}, m.ranges([]string{jobType}))
	m.claimed(all[:2], now.Add(crowdedFor))
	require.Len(t, m.ranges([]string{jobType}), 3)
}

// If many jobs are due at about the same time, the mark moves past most of them.
func TestAMarkTrailsByALimitedNumberOfJobs(t *testing.T) {
	m := newLowWaterMarks()
	now := time.Now()
	claimed := make([]job.Claimed, 5*markTrail)
	for i := range claimed {
		claimed[i] = claimedAt(now, 0, i)
	}
	m.claimed(claimed, now)
	from := m.ranges([]string{jobType})[1].from
	behind := len(claimed) - int(binary.BigEndian.Uint32(from.id[:]))
	require.GreaterOrEqual(t, behind, markTrail)
	require.LessOrEqual(t, behind, 2*markTrail)
}

// The batch commits late but above the mark, and is larger than markTrail.
func TestAMarkDoesNotJumpOverJobsThatWaitInFrontOfIt(t *testing.T) {
	m := newLowWaterMarks()
	now := time.Now()
	tell := func(from time.Time, jobs int) {
		claimed := make([]job.Claimed, jobs)
		for i := range claimed {
			claimed[i] = claimedAt(from.Add(time.Duration(i)), 0, i)
		}
		m.claimed(claimed, now)
	}
	tell(now, markTrail/2)
	late := now.Add(-markSlack / 2)
	tell(late, markTrail) // more of them wait
	require.False(t, (position{runAt: late.Add(markTrail)}).before(m.ranges([]string{jobType})[1].from))
}

func TestALookThatTakesLongIsRepeatedLessOften(t *testing.T) {
	m := newLowWaterMarks()
	now := time.Now()
	types := []string{jobType}
	require.Empty(t, m.due(types, now, false), "nothing is known")
	m.claimed([]job.Claimed{claimedAt(now, 0, 1)}, now)
	require.Len(t, m.due(types, now, false), 1, "nobody has looked yet")
	for _, look := range []struct{ took, busy, idle time.Duration }{
		{time.Millisecond, minMarkLife, 50 * time.Millisecond},
		{40 * time.Millisecond, 2 * time.Second, 2 * time.Second},
		{time.Minute, maxMarkLife, 50 * time.Minute},
	} {
		require.False(t, m.looked(m.due(types, now, false)[0], nil, look.took, now))
		require.Empty(t, m.due(types, now.Add(look.busy), false))
		require.Empty(t, m.due(types, now.Add(look.idle), true))
		require.Len(t, m.due(types, now.Add(look.idle+1), true), 1)
		now = now.Add(look.busy + 1)
		require.Len(t, m.due(types, now, false), 1)
	}
}

func TestAJobBehindAMarkIsFoundWhateverElseIsClaimed(t *testing.T) {
	s := open(t)
	const other = "ANOTHER"
	hourAgo := func(j *job.Submission) { j.RunAt = time.Now().Add(-time.Hour) }
	of := func(jobType string) func(*job.Submission) { return func(j *job.Submission) { j.Type = jobType } }
	types := []string{jobType, other}
	take := func(limit int) []job.Claimed {
		claimed, err := s.Claim(t.Context(), worker, types, limit, aMinute)
		require.NoError(t, err)
		return claimed
	}
	given(t, s)
	given(t, s, of(other))
	require.Len(t, take(10), 2)
	take(10) // a look has taken place
	late := given(t, s, of(other), hourAgo)
	// The first type always has enough jobs for a claim, and some of them are locked.
	busy := submit(t, s, submissions(t, 4, func(j *job.Submission) { j.RunAt = time.Now().Add(-2 * time.Hour) })...)
	unlock := locked(t, s, "select from ready where job_id = any($1) for update", []string{busy[0].String(), busy[1].String()})
	s.marks.byType[jobType][0].looked, s.marks.byType[other][0].looked = time.Time{}, time.Time{}
	take(2)
	unlock()
	var found []job.ID
	for range 4 { // in less time than a mark is trusted
		for _, c := range take(2) {
			found = append(found, c.JobID)
		}
	}
	require.Contains(t, found, late)
}

// waiting is a job in the test's simple model of the ready list.
type waiting struct {
	position
	jobType string
	urgency int16
	entered time.Time
	locked  bool
}

func (w *waiting) compare(other *waiting) int {
	return cmp.Or(cmp.Compare(w.urgency, other.urgency), w.runAt.Compare(other.runAt), slices.Compare(w.id[:], other.id[:]))
}

func (r queueRange) has(w *waiting) bool {
	return w.jobType == r.jobType && int32(w.urgency) < r.until &&
		(w.urgency > r.urgency || w.urgency == r.urgency && !w.before(r.from))
}

// Jobs arrive late, are locked by others, and are claimed in between. Still, no job
// that a claim has room for or skips stays behind a mark for longer than the mark's
// life.
func TestMarksHideNoJobForLong(t *testing.T) {
	for seed := range uint64(60) {
		r := mathrand.New(mathrand.NewPCG(seed, 1))
		m := newLowWaterMarks()
		types := []string{"A", "B"}[:1+r.IntN(2)]
		limit, urgencies := []int{2, 5, 20, 100}[r.IntN(4)], []int{1, 3, 9, 12}[r.IntN(4)]
		now := time.Unix(1e9, 0)
		var ready []*waiting
		for n := uint32(0); n < 4000; {
			now = now.Add(time.Duration(1+r.IntN(100)) * time.Millisecond)
			for range r.IntN(2 * limit) {
				n++
				w := &waiting{jobType: types[r.IntN(len(types))], urgency: -int16(r.IntN(urgencies)), entered: now}
				w.runAt = now.Add(-time.Duration(r.IntN(10)/9*r.IntN(5000)) * time.Millisecond)
				binary.BigEndian.PutUint32(w.id[:], n)
				ready = append(ready, w)
			}
			slices.SortFunc(ready, (*waiting).compare)
			for i, w := range ready { // another claimer rolls back, and a new one begins
				if w.locked {
					w.entered = now
				}
				w.locked = i < limit && r.IntN(5) == 0
			}
			lookAll(&m, ready, m.due(types, now, false), now)
			taken := take(ready, m.ranges(types), limit)
			if len(taken) == 0 && lookAll(&m, ready, m.due(types, now, true), now) {
				taken = take(ready, m.ranges(types), limit)
			}
			claimed := make([]job.Claimed, len(taken))
			for i, w := range taken {
				claimed[i] = job.Claimed{Lease: job.Lease{JobID: w.id}, Type: w.jobType, Priority: -w.urgency, RunAt: w.runAt}
			}
			m.claimed(claimed, now)
			ready = slices.DeleteFunc(ready, func(w *waiting) bool { return slices.Contains(taken, w) })
			for _, w := range ready {
				if !w.locked && (len(taken) < limit || w.compare(taken[len(taken)-1]) < 0) {
					require.LessOrEqual(t, now.Sub(w.entered), minMarkLife+200*time.Millisecond, "seed %d", seed)
				}
			}
		}
	}
}

// lookAll does what look_behind.sql does, on a sorted list.
func lookAll(m *lowWaterMarks, ready []*waiting, below []lowWaterMark, now time.Time) (found bool) {
	for _, g := range below {
		var first *position
		for _, w := range ready {
			if first == nil && w.jobType == g.jobType && w.urgency == g.urgency && w.before(g.at) {
				first = &w.position
			}
		}
		if m.looked(g, first, time.Millisecond, now) {
			found = true
		}
	}
	return found
}

// take does what claim.sql does, on a sorted list. It does not model the jobs that a
// claim over several types leaves out because others have locked them.
func take(ready []*waiting, ranges []queueRange, limit int) (taken []*waiting) {
	for _, w := range ready {
		if len(taken) < limit && !w.locked && slices.ContainsFunc(ranges, func(r queueRange) bool { return r.has(w) }) {
			taken = append(taken, w)
		}
	}
	return taken
}

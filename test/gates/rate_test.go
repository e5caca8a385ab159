package gates

import (
	"math"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store"
	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

func TestNoSecondHasMoreStartsThanTheRateAllows(t *testing.T) {
	t.Parallel()
	const rate, burst = 100, 10
	seconds := ofLength(5, 20)
	s := newScene(t, 2, func(s *store.Store) {
		_, err := s.SetLimit(t.Context(), job.Limit{
			Scope: job.LimitType, Name: "VISIT", Rate: &job.Rate{Count: rate, Period: time.Second, Burst: burst},
		})
		require.NoError(t, err)
	})
	jobs := rate*seconds + burst
	require.NoError(t, <-s.submitAll(t, visits(jobs, rig.Submission{Payload: visit{Millis: 1}})))
	s.awaitNone(t, `select count(*) from jobs where finished_at is null`)

	least := s.neverMoreThan(t, rate, burst)
	if full {
		require.GreaterOrEqual(t, least, rate*95/100)
	}

	// What was down does not save up starts, and what begins anew has no new burst.
	waiting := rate * 2
	require.NoError(t, <-s.submitAll(t, visits(waiting, rig.Submission{Payload: visit{Millis: 1}})))
	s.awaitAtLeast(t, jobs+burst, `select count(*) from jobs where finished_at is not null`)
	for _, o := range s.orchestrators {
		require.NoError(t, o.Kill())
	}
	for _, o := range s.orchestrators {
		rigtest.Start(t, o)
	}
	s.awaitNone(t, `select count(*) from jobs where finished_at is null`)
	s.neverMoreThan(t, rate, burst)
	s.nothingIsLeft(t)
}

// neverMoreThan checks that no second has more starts than a rate allows, and returns how
// many each has at least.
//
// A job starts when it is claimed, and its handler begins a little later. On a busy
// machine that takes longer for some than for others. So by the handlers' record, a second
// may have what the rate allows for that much more time. A test at full length allows no
// more.
func (s *scene) neverMoreThan(t *testing.T, rate, burst int) (least int) {
	t.Helper()
	begins, claims := begun(s.lines(t)), s.claims(t)
	_, claimed := perSecond(claims)
	least, most := perSecond(begins)
	shortest, longest := time.Hour, time.Duration(0)
	at := make(map[attempt]time.Time)
	for _, c := range claims {
		at[attempt{c.id, c.fence}] = c.at
	}
	for _, b := range begins {
		claim, found := at[attempt{b.id, b.fence}]
		require.True(t, found, "job %s began under fence %d, but the ledger has no such attempt", b.id, b.fence)
		took := b.at.Sub(claim)
		shortest, longest = min(shortest, took), max(longest, took)
	}
	t.Logf("starts in any second: at least %d, at most %d (claims: %d); claim to start: %s to %s",
		least, most, claimed, shortest, longest)
	require.LessOrEqual(t, claimed, rate+burst)
	allowed := rate + burst
	if !full {
		allowed += int(math.Ceil(float64(rate) * (longest - shortest).Seconds()))
	}
	require.LessOrEqual(t, most, allowed)
	return least
}

// claims are the attempts by the ledger, with the times of their claims, in order.
func (s *scene) claims(t *testing.T) []line {
	t.Helper()
	rows, err := s.db.Query(t.Context(), `select job_id::text, fence, claimed_at from job_attempts order by claimed_at`)
	require.NoError(t, err)
	claims, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (l line, err error) {
		return l, row.Scan(&l.id, &l.fence, &l.at)
	})
	require.NoError(t, err)
	return claims
}

// perSecond returns how many starts there were in the seconds that have the fewest and the
// most, of all seconds between the first start and the last.
func perSecond(starts []line) (least, most int) {
	least = len(starts)
	from := 0 // the first start of the second that ends with the start at to
	for to := range starts {
		for starts[to].at.Sub(starts[from].at) >= time.Second {
			// The second after the start at from has those between the two.
			least = min(least, to-from-1)
			from++
		}
		most = max(most, to-from+1)
	}
	return least, most
}

func TestStartsPerSecondAreCounted(t *testing.T) {
	t.Parallel()
	var starts []line
	for _, millis := range []int64{0, 100, 1050, 1200, 1300, 2200} {
		starts = append(starts, line{at: time.UnixMilli(millis)})
	}
	least, most := perSecond(starts)
	require.Equal(t, 1, least)
	require.Equal(t, 3, most)
}

package ui

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

const (
	viewers = 10
	// refresh is how often a tab asks, and the least time from one reading of the figures to the next.
	refresh = 2 * time.Second
)

// view polls the overview as so many tabs do, until done is closed, and then returns how often.
func (s *scene) view(t *testing.T, tabs int, every time.Duration, done <-chan struct{}) (wait func() int) {
	t.Helper()
	polls := make([]int, tabs)
	var open sync.WaitGroup
	for i := range tabs {
		in := s.operator(t)
		open.Go(func() {
			for {
				status, _, text := in.send(http.MethodGet, "/ui/", nil, http.Header{"Hf-Fragment": {"live-overview"}})
				if status != http.StatusOK {
					t.Errorf("%d %s", status, text)
					return
				}
				polls[i]++
				select {
				case <-done:
					return
				case <-time.After(every):
				}
			}
		})
	}
	return func() (all int) {
		open.Wait()
		for _, n := range polls {
			all += n
		}
		return all
	}
}

// readings is how often the figures were read so far: each time, metrics_attempts.sql reads a
// table that nothing else reads while no jobs are worked. A session of the server counts after a
// while.
func readings(t *testing.T, db *pgx.Conn) (n int) {
	t.Helper()
	require.NoError(t, db.QueryRow(t.Context(), "select seq_scan + coalesce(idx_scan, 0) from pg_stat_user_tables where relname = 'tally_attempts'").Scan(&n))
	return n
}

func TestTenTabsCostOneReadingARefresh(t *testing.T) {
	s, db := amongMany(t)
	before := readings(t, db)
	began, done := time.Now(), make(chan struct{})
	polled := s.view(t, viewers, 50*time.Millisecond, done)
	<-time.After(5 * refresh)
	close(done)
	polls := polled()
	most := int(time.Since(began)/refresh) + 1
	var read int
	require.Eventually(t, func() bool { read = readings(t, db) - before; return read > 0 }, patience, glance, "the figures are read")
	t.Logf("%d polls of %d tabs in %s cost %d readings", polls, viewers, time.Since(began).Round(time.Second), read)
	require.LessOrEqual(t, read, most)
	require.Greater(t, polls, 2*most, "they asked more often")
}

// claimedASecond is how many jobs a second are claimed of a backlog that appears at once, by
// the times in the ledger.
func claimedASecond(t *testing.T, db *pgx.Conn, jobs int) (rate float64) {
	t.Helper()
	_, err := db.Exec(t.Context(), `
		with written as (
			insert into jobs (job_id, tenant, job_type, priority, request_hash, payload, tags, trace_parent, trace_state, max_attempts, timeout, state, run_at)
			select (lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0') || '70028' || lpad(to_hex(i), 15, '0'))::uuid,
				'default', 'WORK', 0, '', '{}', '{}', '', '', 4, '30 seconds', 'queued', now()
			from generate_series(1, $1::integer) i
			returning job_id, run_at
		), tallied as (
			insert into tallies (slot, job_type, worker_id, event, attempt, jobs, seconds)
			select date_bin('10 seconds', now(), 'epoch'), 'WORK', '', 'submitted', 0, $1, 0
		)
		insert into ready (job_id, job_type, urgency, run_at) select job_id, 'WORK', 0, run_at from written`, jobs)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		var left bool
		err := db.QueryRow(t.Context(), "select exists (select from ready where job_type = 'WORK') or exists (select from leases)").Scan(&left)
		return err == nil && !left
	}, patience, 10*glance)
	require.NoError(t, db.QueryRow(t.Context(), `
		select $1 / extract(epoch from max(started_at) - min(started_at))::float8
		from (select started_at from jobs where job_type = 'WORK' order by job_type desc, job_id desc limit $1) worked`, jobs).Scan(&rate))
	return rate
}

// TestViewersDoNotSlowClaimsDown takes turns with viewers and without.
func TestViewersDoNotSlowClaimsDown(t *testing.T) {
	if !millions {
		t.Skip("it measures: make ui-scale")
	}
	const pairs, jobs = 7, 100_000
	s, db := amongMany(t)
	claimedASecond(t, db, jobs) // connections and plans are made
	var ratios []float64
	for pair := range pairs {
		var rates [2]float64 // without, and with
		for turn := range 2 {
			watched := (turn + pair) % 2
			done := make(chan struct{})
			wait := func() int { return 0 }
			if watched == 1 {
				wait = s.view(t, viewers, refresh, done)
			}
			rates[watched] = claimedASecond(t, db, jobs)
			close(done)
			wait()
		}
		ratios = append(ratios, rates[1]/rates[0])
		t.Logf("claimed a second: %.0f without viewers, %.0f with %d, %.3f times as many", rates[0], rates[1], viewers, ratios[pair])
	}
	slices.Sort(ratios)
	t.Logf("in the median pair %.3f times as many", ratios[pairs/2])
	require.Greater(t, ratios[pairs/2], 0.98)
}

package store

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/sql"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

func TestClaimsFollowPriorityThenDueTimeThenCreation(t *testing.T) {
	s := open(t)
	now := ask[time.Time](t, s, "select now()")
	of := func(kind string, priority int16, ago time.Duration) func(*job.Submission) {
		return func(j *job.Submission) { j.Type, j.Priority, j.RunAt = kind, priority, now.Add(-ago) }
	}
	// In the order of claiming; the last two are due at the same time.
	batch := []job.Submission{
		submission(t, of("B", 32767, time.Minute)),
		submission(t, of("A", 9, time.Second)),
		submission(t, of("B", 1, 3*time.Minute)),
		submission(t, of("A", 1, 2*time.Minute)),
		submission(t, of("C", 1, time.Minute)),
		submission(t, of("A", 0, time.Hour)),
		submission(t, of("B", -5, 2*time.Hour)),
		submission(t, of("A", -32767, time.Hour)),
		submission(t, of("C", -32767, time.Hour)),
	}
	for _, i := range []int{4, 8, 0, 6, 2, 5, 7, 1, 3} {
		submit(t, s, batch[i])
	}
	given(t, s, of("UNSERVED", 32767, time.Hour))

	var got []job.ID
	for _, limit := range []int{1, 2, 3, 1, 100} {
		claimed, err := s.Claim(t.Context(), worker, []string{"C", "A", "B"}, limit, aMinute)
		require.NoError(t, err)
		for _, c := range claimed {
			got = append(got, c.JobID)
		}
	}
	var want []job.ID
	for _, submitted := range batch {
		want = append(want, submitted.ID)
	}
	require.Equal(t, want, got)
	requireSound(t, s)
}

func TestAClaimTakesALeaseAndCountsTheAttempt(t *testing.T) {
	s := open(t)
	c := running(t, s)
	require.Equal(t, 1, c.Attempt)
	require.Equal(t, int64(1), c.Fence)
	require.Equal(t, "worker-1 00:01:00 00:01:00", ask[string](t, s,
		"select concat_ws(' ', worker_id, l.expires_at - claimed_at, l.expires_at - j.started_at) from leases l join current_jobs j using (job_id, worker_id)"))
	view := get(t, s, c.JobID)
	require.Equal(t, job.Running, view.State)
	require.NotNil(t, view.StartedAt)
	require.Nil(t, view.FinishedAt)

	leases := map[job.LeaseID]bool{c.ID: true}
	for round := 2; round <= 4; round++ {
		settled(t, s, c, job.Failure)
		require.Equal(t, 1, promote(t, s, 10))
		c = claim(t, s, 10)[0]
		require.Equal(t, round, c.Attempt)
		require.Equal(t, int64(round), c.Fence)
		require.NotContains(t, leases, c.ID)
		leases[c.ID] = true
	}
	requireSound(t, s)
}

func TestAFenceNeverFallsNotEvenByARequeue(t *testing.T) {
	s := open(t)
	c := running(t, s)
	settled(t, s, c, job.Released)
	c = claim(t, s, 1)[0]
	require.Equal(t, 1, c.Attempt, "giving back is not charged")
	require.Equal(t, int64(2), c.Fence)
	settled(t, s, c, job.PermanentFailure)
	_, err := s.Requeue(t.Context(), c.JobID)
	require.NoError(t, err)
	c = claim(t, s, 1)[0]
	require.Equal(t, 1, c.Attempt)
	require.Equal(t, int64(3), c.Fence)
	requireSound(t, s)
}

func TestAClaimForNoTypesClaimsNothing(t *testing.T) {
	s := open(t)
	given(t, s)
	for _, types := range [][]string{nil, {}, {"OTHER"}, {""}} {
		claimed, err := s.Claim(t.Context(), worker, types, 10, aMinute)
		require.NoError(t, err)
		require.Empty(t, claimed)
	}
	claimed, err := s.Claim(t.Context(), worker, []string{jobType}, 0, aMinute)
	require.NoError(t, err)
	require.Empty(t, claimed)
	require.Len(t, claim(t, s, 10), 1)
}

// A planner that runs the LIMIT once for each joined row claims too many
// (odd-jobs#115). Whether it does depends on statistics.
func TestAClaimNeverTakesMoreThanItsLimit(t *testing.T) {
	statistics := map[string]string{
		"never analysed":         "",
		"analysed while empty":   "analyze ready, jobs, leases",
		"said to be of one row":  "update pg_class set reltuples = 1, relpages = 1 where relname in ('ready', 'jobs')",
		"said to be of millions": "update pg_class set reltuples = 1e8, relpages = 1 where relname in ('ready', 'jobs', 'ready_pkey')",
	}
	planners := map[string][]string{
		"pinned":           nil,
		"left alone":       {"reset enable_seqscan", "reset enable_bitmapscan", "reset enable_hashjoin", "reset enable_mergejoin"},
		"without nesting":  {"set enable_nestloop = off", "reset enable_hashjoin", "reset enable_mergejoin"},
		"with custom plan": {"set plan_cache_mode = force_custom_plan"},
	}
	for said, statement := range statistics {
		t.Run(said, func(t *testing.T) {
			url := pgtest.URL(t)
			s := openAt(t, url)
			if statement != "" {
				exec(t, s, statement)
			}
			submit(t, s, submissions(t, 300)...)
			if said != "analysed while empty" && statement != "" {
				exec(t, s, statement)
			}
			for planner, settings := range planners {
				conn, err := s.db.Worker.Acquire(t.Context())
				require.NoError(t, err)
				for _, setting := range settings {
					_, err := conn.Exec(t.Context(), setting)
					require.NoError(t, err)
				}
				rows, err := conn.Query(t.Context(), sql.Text("claim"), claiming(7, aMinute)...)
				require.NoError(t, err)
				n := 0
				for rows.Next() {
					n++
				}
				require.NoError(t, rows.Err())
				require.Equal(t, 7, n, planner)
				require.NoError(t, conn.Hijack().Close(t.Context()))
			}
			require.Equal(t, 7*len(planners), ask[int](t, s, "select count(*) from leases"))
			requireSound(t, s)
		})
	}
}

func TestClaimersSkipWhatAnotherHolds(t *testing.T) {
	s := open(t)
	ids := submit(t, s, submissions(t, 4)...)
	commit := locked(t, s, "select from ready where job_id = any($1) for update", []string{ids[0].String(), ids[2].String()})
	claimed := claim(t, s, 10) // does not wait
	require.Len(t, claimed, 2)
	require.Equal(t, ids[1], claimed[0].JobID)
	require.Equal(t, ids[3], claimed[1].JobID)
	commit()
	s.marks = newLowWaterMarks()
	require.Len(t, claim(t, s, 10), 2)
	requireSound(t, s)
}

func TestRacingClaimersShareTheJobsWithoutAnOverlap(t *testing.T) {
	url := pgtest.URL(t)
	stores := []*Store{openAt(t, url), openAt(t, url)}
	const jobs = 400
	submit(t, stores[0], submissions(t, jobs)...)
	owners := make([][]job.Claimed, 4)
	var all sync.WaitGroup
	var taken atomic.Int64
	start := make(chan struct{})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for i := range owners {
		all.Go(func() {
			<-start
			for taken.Load() < jobs {
				claimed, err := stores[i%2].Claim(ctx, worker, []string{jobType}, 7, aMinute)
				if err != nil {
					t.Error(err)
					return
				}
				owners[i] = append(owners[i], claimed...)
				taken.Add(int64(len(claimed)))
			}
		})
	}
	close(start)
	all.Wait()
	seen := make(map[job.ID]bool)
	for _, claimed := range owners {
		for _, c := range claimed {
			require.False(t, seen[c.JobID])
			require.Equal(t, int64(1), c.Fence)
			seen[c.JobID] = true
		}
	}
	require.Len(t, seen, jobs)
	requireSound(t, stores[0])
}

func TestAJobThatCommitsLateBehindTheMarkIsFound(t *testing.T) {
	s := open(t)
	hour := func(j *job.Submission) { j.RunAt = time.Now().Add(-time.Hour) }
	late := submission(t, hour)
	entries := []entry{newEntry(&late)}
	inserted := newInsertion(entries, []int{0})
	commit := locked(t, s, sql.Text(inserted.statement()), inserted.columns()...)
	submit(t, s, submissions(t, 3)...)
	require.Len(t, claim(t, s, 10), 3)
	commit()

	// The mark has already passed this job: only the look behind the mark finds it.
	claimed := claim(t, s, 10)
	require.Len(t, claimed, 1)
	require.Equal(t, late.ID, claimed[0].JobID)
}

func TestAMarkHidesNoMoreUrgentJob(t *testing.T) {
	s := open(t)
	submit(t, s, submissions(t, 3)...)
	require.Len(t, claim(t, s, 3), 3)
	urgent := given(t, s, func(j *job.Submission) { j.Priority, j.RunAt = 5, time.Now().Add(-time.Hour) })
	claimed := claim(t, s, 3)
	require.Len(t, claimed, 1)
	require.Equal(t, urgent, claimed[0].JobID)
}

// Rows that are locked but not claimed cost writes, and other claimers skip them in
// the meantime.
func TestAClaimOverManyTypesLocksOnlyWhatItClaims(t *testing.T) {
	s := open(t)
	types := make([]string, 10)
	for i := range types {
		types[i] = fmt.Sprintf("TYPE_%d", i)
		fill(t, s, job.Queued, 50, types[i])
	}
	tx, err := s.db.Worker.Begin(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Rollback(t.Context())) }()
	shares, err := sharesOf(t.Context(), tx.Conn(), s.marks.ranges(types), 40)
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), sql.Text("claim"), claimArguments(shares, worker, 40, aMinute)...)
	require.NoError(t, err)
	free := ask[int](t, s, "select count(*) from (select from ready for update skip locked) unlocked")
	require.Equal(t, 10*50-40, free)
}

func TestAMarkStaysBehindWhatCommitsABitLate(t *testing.T) {
	s := open(t)
	now := ask[time.Time](t, s, "select now()")
	at := func(ago time.Duration) func(*job.Submission) {
		return func(j *job.Submission) { j.RunAt = now.Add(-ago) }
	}
	given(t, s, at(0))
	require.Len(t, claim(t, s, 1), 1)
	within := given(t, s, at(markSlack-time.Millisecond))
	claimed := claim(t, s, 1)
	require.Len(t, claimed, 1)
	require.Equal(t, within, claimed[0].JobID)
}

func TestACheckpointReachesTheNextAttempt(t *testing.T) {
	s := open(t)
	c := running(t, s)
	lost, err := s.SaveProgress(t.Context(), []job.Report{{Lease: c.Lease, Checkpoint: json.RawMessage(`{ "row": 7 }`)}})
	require.NoError(t, err)
	require.Empty(t, lost)
	settled(t, s, c, job.Released)
	s.marks = newLowWaterMarks()
	require.Equal(t, `{ "row": 7 }`, string(claim(t, s, 1)[0].Checkpoint))
}

package gates

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

func TestAPauseIsInForceEverywhereUntilItEnds(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{
		"of a job type": "/debug/pauses/type/VISIT",
		"of a tenant":   "/debug/pauses/tenant/paused",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, 2, nil, "plugins.0.concurrency=5")
			one, two := s.orchestrators[0], s.orchestrators[1]
			const jobs, unfinished = 600, `select count(*) from jobs where job_type = 'VISIT' and finished_at is null`
			require.NoError(t, <-s.submitAll(t, visits(jobs, rig.Submission{Tenant: "paused", Payload: visit{Millis: 100}})))
			s.awaitAtLeast(t, 10, `select count(*) from jobs where finished_at is not null`)

			why := map[string]any{"reason": "migration"}
			require.NoError(t, one.Call(t.Context(), http.MethodPut, path, why, http.StatusOK, nil))
			paused := time.Now()
			s.awaitNone(t, `select count(*) from leases`)
			waiting := s.count(t, unfinished)
			require.NotZero(t, waiting, "the pause came too late, and the test has shown nothing")
			s.othersRun(t)
			starts := begun(visitsOf(s.lines(t)))
			took := starts[len(starts)-1].at.Sub(paused)
			t.Logf("%d jobs wait; the last one started %s after the pause", waiting, took)
			require.Less(t, took, ofLength(10*time.Second, time.Second))

			s.saysWhy(t, two, "migration")

			for _, o := range s.orchestrators {
				require.NoError(t, o.Kill())
			}
			for _, o := range s.orchestrators {
				rigtest.Start(t, o)
			}
			s.othersRun(t)
			require.Len(t, begun(visitsOf(s.lines(t))), len(starts), "jobs that were started after a restart")
			require.Equal(t, waiting, s.count(t, unfinished))

			require.NoError(t, two.Call(t.Context(), http.MethodDelete, path, nil, http.StatusOK, nil))
			s.awaitNone(t, `select count(*) from jobs where finished_at is null`)
			s.nothingIsLeft(t)
		})
	}
}

// saysWhy checks that the orchestrator says of a waiting job that it is paused, and why.
func (s *scene) saysWhy(t *testing.T, o *rig.Orchestrator, reason string) {
	t.Helper()
	var id string
	require.NoError(t, s.db.QueryRow(t.Context(), `select job_id::text from jobs where finished_at is null limit 1`).Scan(&id))
	var detail struct {
		Waits []struct {
			Reason string
			Pause  struct{ Reason string }
		}
	}
	require.NoError(t, o.Call(t.Context(), http.MethodGet, "/debug/jobs/"+id, nil, http.StatusOK, &detail))
	require.NotEmpty(t, detail.Waits)
	require.Equal(t, "paused", detail.Waits[0].Reason)
	require.Equal(t, reason, detail.Waits[0].Pause.Reason)
}

// visitsOf are the lines of the type that is paused.
func visitsOf(all []line) []line {
	var found []line
	for _, l := range all {
		if l.jobType == "VISIT" {
			found = append(found, l)
		}
	}
	return found
}

// othersRun runs jobs of another type and tenant, one after the other, through each
// orchestrator. Meanwhile the others could start too, if nothing kept them.
func (s *scene) othersRun(t *testing.T) {
	t.Helper()
	for range 5 {
		for _, o := range s.orchestrators {
			id := rigtest.Submit(t, o, rig.Submission{JobType: "OTHER", Tenant: "another", Payload: visit{Millis: 50}})
			rigtest.Await(t, o, id, "COMPLETED")
		}
	}
}

func TestAJobWhoseKeyIsFullDoesWhatItWasSubmittedFor(t *testing.T) {
	t.Parallel()
	s := newScene(t, 2, nil)
	one, two := s.orchestrators[0], s.orchestrators[1]
	for _, c := range []struct {
		onConflict, first, second string
	}{
		{"cancel_newcomer", "RUNNING", "CANCELED"},
		{"cancel_oldest", "CANCELED", "RUNNING"},
	} {
		submission := rig.Submission{
			JobType: "VISIT", ConcurrencyKey: c.onConflict, ConcurrencyLimit: 1, OnConflict: c.onConflict, Timeout: "1h",
			Payload: visit{Millis: endless, Key: c.onConflict, Places: 1},
		}
		first := rigtest.Submit(t, one, submission)
		rigtest.Await(t, one, first, "RUNNING")
		second := rigtest.Submit(t, two, submission)
		rigtest.Await(t, one, second, c.second)
		rigtest.Await(t, two, first, c.first)
	}
	s.cancelAll(t)
	for _, l := range s.lines(t) {
		require.NotEqual(t, "over", l.what)
	}
	s.nothingIsLeft(t)
}

func TestSubmissionsThatMustBeUniqueMakeOneJob(t *testing.T) {
	t.Parallel()
	s := newScene(t, 2, nil)
	const times = 40
	for name, unique := range map[string]rig.Submission{
		"for a period":             {JobType: "VISIT", Payload: visit{Millis: 1}, UniqueFor: "1h"},
		"while the job is waiting": {JobType: "OTHER", Payload: visit{Millis: 1}, UniqueWhile: "open", Hold: true},
	} {
		var ids [times]string
		var clients errgroup.Group
		for i := range times {
			clients.Go(func() (err error) {
				ids[i], err = s.orchestrators[i%2].Submit(t.Context(), unique)
				return err
			})
		}
		require.NoError(t, clients.Wait())
		for _, id := range ids {
			require.Equal(t, ids[0], id, name)
		}
		require.Equal(t, 1, s.count(t, `select count(*) from jobs where job_type = $1`, unique.JobType), name)
		if unique.Hold {
			o := s.orchestrators[1]
			require.NoError(t, o.Call(t.Context(), http.MethodPost, "/jobs/"+ids[0]+"/release", nil, http.StatusOK, nil))
			rigtest.Await(t, o, ids[0], "COMPLETED")
			unique.Hold = false
			require.NotEqual(t, ids[0], rigtest.Submit(t, o, unique), "the job has ended, but keeps others out")
		}
	}
	s.awaitNone(t, `select count(*) from jobs where finished_at is null`)
	s.nothingIsLeft(t)
}

func TestAJobThatHasNotStartedInTimeIsCanceled(t *testing.T) {
	t.Parallel()
	s := newScene(t, 2, nil)
	one, two := s.orchestrators[0], s.orchestrators[1]
	busy := rig.Submission{JobType: "VISIT", ConcurrencyKey: "busy", ConcurrencyLimit: 1, Timeout: "1h", Payload: visit{Millis: endless}}
	first := rigtest.Submit(t, one, busy)
	rigtest.Await(t, one, first, "RUNNING")
	busy.TTL = "500ms"
	late := rigtest.Submit(t, two, busy)
	busy.TTL, busy.ConcurrencyKey, busy.Payload = "1h", "free", visit{Millis: 1}
	inTime := rigtest.Submit(t, two, busy)

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ended, err := two.Await(ctx, late, "CANCELED")
	require.NoError(t, err)
	require.True(t, ended.StartedAt.IsZero())
	rigtest.Await(t, one, inTime, "COMPLETED")
	rigtest.Await(t, one, first, "RUNNING")
	s.cancelAll(t)
	s.nothingIsLeft(t)
}

// endless is how long a job runs that the test cancels.
const endless = 3_600_000

// cancelAll cancels all jobs that have not ended, and waits until they have.
func (s *scene) cancelAll(t *testing.T) {
	t.Helper()
	rows, err := s.db.Query(t.Context(), `select job_id::text from jobs where finished_at is null`)
	require.NoError(t, err)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	for _, id := range ids {
		require.NoError(t, s.orchestrators[0].Call(t.Context(), http.MethodPost, "/jobs/"+id+"/cancel", nil, http.StatusOK, nil))
	}
	s.awaitNone(t, `select count(*) from jobs where finished_at is null`)
}

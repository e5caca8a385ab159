package store

import (
	"encoding/binary"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

func TestAReleasedWorkflowHasTheDueTimesOfBefore(t *testing.T) {
	s := open(t)
	at := time.Now().Add(48 * time.Hour).Truncate(time.Microsecond)
	steps := []job.WorkflowStep{named(t, "a"), named(t, "timed"), named(t, "held"), named(t, "timed later", 0)}
	steps[1].RunAt, steps[2].Hold, steps[3].RunAt = at, true, at
	w := workflow(t, steps...)
	ids := submitWorkflow(t, s, w)
	run(t, s, ids[0], job.Success, "")
	for range 2 { // the second time finds nothing to note
		require.NoError(t, s.HoldWorkflow(t.Context(), w.ID))
		require.Equal(t, 3, ask[int](t, s, "select count(*) from timers where run_at = 'infinity'"))
	}
	require.NoError(t, s.ReleaseWorkflow(t.Context(), w.ID))
	done, err := s.SweepWorkflows(t.Context(), []job.ID{w.ID})
	require.NoError(t, err)
	require.Equal(t, 2, done.Due)
	for _, i := range []int{1, 3} {
		due := ask[time.Time](t, s, "select run_at from jobs where job_id = $1", postgres.UUID(ids[i]))
		require.True(t, at.Equal(due), "%s: %s", steps[i].Name, due)
	}
	require.True(t, ask[bool](t, s, "select run_at = 'infinity' from jobs where job_id = $1", postgres.UUID(ids[2])), "it was held by itself")
	requireSound(t, s)
}

// Retention looks at a job of a workflow only once the workflow has finished, and the workflow
// goes with the last of them.
func TestAWorkflowKeepsItsJobsUntilItHasFinishedAndGoesWithTheLast(t *testing.T) {
	s := open(t)
	w := workflow(t, named(t, "a"), named(t, "b", 0))
	for i := range w.Jobs { // The walk goes by the time in the ids.
		binary.BigEndian.PutUint32(w.Jobs[i].ID[:], uint32(time.Now().Add(-10*24*time.Hour).UnixMilli()>>16))
	}
	ids := submitWorkflow(t, s, w)
	run(t, s, ids[0], job.Success, "")
	const age = "update jobs set finished_at = finished_at - interval '10 days'"
	exec(t, s, age)
	require.Zero(t, sweepAll(t, s, aDay, 10).Jobs(), "b may still read its result")
	run(t, s, ids[1], job.PermanentFailure, "")
	exec(t, s, age)
	exec(t, s, "update dead_letters set dead_at = dead_at - interval '10 days'")
	require.Zero(t, sweepAll(t, s, aDay, 10).Jobs(), "b may still be requeued")
	tidied := func() int {
		t.Helper()
		_, more, err := s.TidyWorkflows(t.Context(), job.ID{}, nil)
		require.NoError(t, err)
		require.False(t, more)
		return 1 - ask[int](t, s, "select count(*) from workflows")
	}
	require.Zero(t, tidied(), "it has not finished")

	require.NoError(t, s.CancelWorkflow(t.Context(), w.ID))
	_, err := s.SweepWorkflows(t.Context(), []job.ID{w.ID})
	require.NoError(t, err)
	require.Zero(t, tidied(), "its jobs are there")
	require.EqualValues(t, 2, sweepAll(t, s, aDay, 10).Jobs())
	require.Equal(t, 1, tidied())
	require.Zero(t, ask[int](t, s, "select (select count(*) from workflow_jobs) + (select count(*) from workflow_edges)"))
	_, err = s.Workflow(t.Context(), w.ID)
	require.ErrorIs(t, err, job.ErrNoWorkflow)
}

func TestSubmissionsOfOneKeyAtOnceMakeOneWorkflow(t *testing.T) {
	s := open(t)
	const clients = 8
	receipts := make([]job.WorkflowReceipt, clients)
	var arrived, gone sync.WaitGroup
	arrived.Add(clients)
	for i := range clients {
		w := workflow(t, named(t, "a"), named(t, "b", 0))
		w.IdempotencyKey = "nightly"
		gone.Go(func() {
			arrived.Done()
			arrived.Wait()
			var err error
			if receipts[i], err = s.SubmitWorkflow(t.Context(), w); err != nil {
				t.Error(err)
			}
		})
	}
	gone.Wait()
	fresh := 0
	for _, receipt := range receipts {
		require.Equal(t, receipts[0].ID, receipt.ID)
		if !receipt.Replayed {
			fresh++
			require.Len(t, receipt.Jobs, 2)
		}
	}
	require.Equal(t, 1, fresh)
	require.Equal(t, 2, ask[int](t, s, "select count(*) from jobs"))
	require.Equal(t, 2, ask[int](t, s, "select count(*) from workflow_jobs"))
	requireSound(t, s)
}

// canceled cancels a workflow and all of its jobs that wait.
func canceled(t testing.TB, s *Store, id job.ID) {
	t.Helper()
	if err := s.CancelWorkflow(t.Context(), id); err != nil {
		t.Error(err)
		return
	}
	for {
		some, err := s.CancelPortion(t.Context(), id)
		if err != nil {
			t.Error(err)
		}
		if len(some) == 0 || err != nil {
			return
		}
	}
}

func TestACancelAndTheLastEndBeforeAJobAtOnceLeaveNothingBehind(t *testing.T) {
	s := open(t)
	for range 20 {
		w := workflow(t, named(t, "a"), named(t, "b", 0))
		w.OnComplete = new(submission(t))
		ids := submitWorkflow(t, s, w)
		s.marks = newLowWaterMarks()
		first := claim(t, s, 1)[0]
		settled(t, s, first, job.Success)
		var arrived, gone sync.WaitGroup
		arrived.Add(2)
		gone.Go(func() {
			arrived.Done()
			arrived.Wait()
			canceled(t, s, w.ID)
		})
		gone.Go(func() {
			arrived.Done()
			arrived.Wait()
			if _, err := s.Follow(t.Context(), job.FollowPlan{}); err != nil {
				t.Error(err)
			}
		})
		gone.Wait()
		for range 3 {
			follow1(t, s)
		}
		requireNothingDue(t, s)
		require.Equal(t, job.Canceled, get(t, s, ids[1]).State)
		require.Equal(t, job.Canceled, get(t, s, ids[2]).State)
		require.Equal(t, job.WorkflowCanceled, stateOf(t, s, w.ID))
		requireSound(t, s)
	}
}

// The follower has made the job due, but not committed, when somebody cancels the workflow.
func TestACancelBehindTheFollowerCancelsWhatThatMadeDue(t *testing.T) {
	s := open(t)
	w := workflow(t, named(t, "a"), named(t, "b", 0))
	ids := submitWorkflow(t, s, w)
	settled(t, s, claim(t, s, 1)[0], job.Success)
	commit := locked(t, s, "select from timers where job_id = $1 for update", ids[1].String())
	follow := after(func() job.Following { return follow1(t, s) })
	awaitBlocked(t, s, 1)
	cancel := after(func() struct{} { canceled(t, s, w.ID); return struct{}{} })
	awaitBlocked(t, s, 2)
	commit()
	follow()
	cancel()
	follow1(t, s)
	requireNothingDue(t, s)
	require.Equal(t, job.Canceled, get(t, s, ids[1]).State)
	require.Equal(t, job.WorkflowCanceled, stateOf(t, s, w.ID))
	requireSound(t, s)
}

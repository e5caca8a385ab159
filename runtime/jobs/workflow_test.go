package jobs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// manyJobs is more than one statement holds or cancels.
const manyJobs = 1100

// flow submits a workflow of jobs that are due, and as many that come after the first.
func flow(t *testing.T, jobs *direct, due, waiting int) job.WorkflowReceipt {
	t.Helper()
	id := submission(t).ID
	w := job.WorkflowSubmission{ID: id, Tenant: job.DefaultTenant}
	for range due {
		w.Jobs = append(w.Jobs, job.WorkflowStep{Submission: submission(t), OnDeath: job.OnDeathWait})
	}
	for range waiting {
		w.Jobs = append(w.Jobs, job.WorkflowStep{Submission: submission(t), OnDeath: job.OnDeathWait, After: []int{0}})
	}
	receipt, err := jobs.SubmitWorkflow(t.Context(), w)
	require.NoError(t, err)
	return receipt
}

// claimMany takes up to so many queued jobs.
func claimMany(t *testing.T, jobs *direct, n int) []job.Claimed {
	t.Helper()
	require.NoError(t, jobs.ledger.RegisterWorker(t.Context(), job.Worker{ID: "w", Host: "h", Roles: job.AllRoles()}, time.Minute))
	claimed, err := jobs.ledger.Claim(t.Context(), "w", []string{"ECHO"}, n, time.Minute)
	require.NoError(t, err)
	require.Len(t, claimed, n)
	return claimed
}

func bury(t *testing.T, jobs *direct, claimed []job.Claimed) {
	t.Helper()
	for _, c := range claimed {
		fates, err := jobs.ledger.Settle(t.Context(), []job.Settlement{{
			Lease: c.Lease, Decision: job.Decision{To: job.Dead, Kind: job.PermanentFailure, Attempt: 1}, Number: 1, Error: "broken",
		}})
		require.NoError(t, err)
		require.Equal(t, []job.SettleResult{job.Settled}, fates)
	}
}

// states counts the jobs of a workflow.
func states(t *testing.T, jobs *direct, id job.ID) map[job.State]int {
	t.Helper()
	detail, err := jobs.ledger.WorkflowDetail(t.Context(), id)
	require.NoError(t, err)
	counts := make(map[job.State]int)
	for _, step := range detail.Steps {
		counts[step.State]++
	}
	return counts
}

func TestACanceledWorkflowEndsWhateverItsJobsDo(t *testing.T) {
	jobs, _ := open(t)
	w := flow(t, jobs, manyJobs, manyJobs)
	claimed := claimMany(t, jobs, 5)
	bury(t, jobs, claimed[:2])
	require.NoError(t, jobs.CancelWorkflow(t.Context(), w.ID))
	require.Equal(t, map[job.State]int{job.Dead: 2, job.Running: 3, job.Canceled: 2*manyJobs - 5}, states(t, jobs, w.ID))
	left, err := jobs.ledger.OpenWorkflowJobs(t.Context(), w.ID, true, job.Created, job.Queued, job.Retry)
	require.NoError(t, err)
	require.Empty(t, left, "those that run are asked to stop")
	require.NoError(t, jobs.CancelWorkflow(t.Context(), w.ID), "again")

	for _, c := range claimed[2:] {
		_, err := jobs.ledger.Settle(t.Context(), []job.Settlement{{
			Lease: c.Lease, Decision: job.Decision{To: job.Canceled, Kind: job.CancelConfirmed, Attempt: 1}, Number: 1,
		}})
		require.NoError(t, err)
	}
	for range 20 {
		_, err := jobs.ledger.Follow(t.Context(), job.FollowPlan{})
		require.NoError(t, err)
		_, err = jobs.ledger.SweepWorkflows(t.Context(), []job.ID{w.ID})
		require.NoError(t, err)
	}
	found, err := jobs.ledger.Workflow(t.Context(), w.ID)
	require.NoError(t, err)
	require.Equal(t, job.WorkflowCanceled, found.State())
	require.Equal(t, 2*manyJobs, found.Unsuccessful)
	require.ErrorIs(t, jobs.CancelWorkflow(t.Context(), w.ID), job.ErrWrongState)
}

func TestAllDeadJobsOfAWorkflowAreRequeuedAndNoOthers(t *testing.T) {
	jobs, _ := open(t)
	w, other := flow(t, jobs, 3, 1), flow(t, jobs, 2, 0)
	bury(t, jobs, claimMany(t, jobs, 5))
	requeued, err := jobs.RequeueWorkflow(t.Context(), w.ID)
	require.NoError(t, err)
	require.Equal(t, 3, requeued)
	require.Equal(t, map[job.State]int{job.Queued: 3, job.Created: 1}, states(t, jobs, w.ID))
	require.Equal(t, map[job.State]int{job.Dead: 2}, states(t, jobs, other.ID))
	requeued, err = jobs.RequeueWorkflow(t.Context(), w.ID)
	require.NoError(t, err)
	require.Zero(t, requeued)
}

func TestAWorkflowOfManyJobsIsHeldAndReleased(t *testing.T) {
	jobs, _ := open(t)
	w := flow(t, jobs, manyJobs, 0)
	require.NoError(t, jobs.HoldWorkflow(t.Context(), w.ID))
	require.Equal(t, map[job.State]int{job.Created: manyJobs}, states(t, jobs, w.ID))
	promoted, err := jobs.ledger.Promote(t.Context(), 2*manyJobs)
	require.NoError(t, err)
	require.Zero(t, promoted)
	require.NoError(t, jobs.ReleaseWorkflow(t.Context(), w.ID))
	promoted, err = jobs.ledger.Promote(t.Context(), 2*manyJobs)
	require.NoError(t, err)
	require.Equal(t, job.Promoted{Ready: manyJobs}, promoted)
}

package store

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

// named is a job of a workflow that is submitted, after others.
func named(t testing.TB, name string, after ...int) job.WorkflowStep {
	t.Helper()
	return job.WorkflowStep{Submission: submission(t), Name: name, After: after, OnDeath: job.OnDeathWait}
}

// workflow is a submission of steps, after the changes.
func workflow(t testing.TB, steps ...job.WorkflowStep) job.WorkflowSubmission {
	t.Helper()
	return job.WorkflowSubmission{ID: newID(t), Tenant: job.DefaultTenant, Jobs: steps}
}

func submitWorkflow(t testing.TB, s *Store, w job.WorkflowSubmission) []job.ID {
	t.Helper()
	receipt, err := s.SubmitWorkflow(t.Context(), w)
	require.NoError(t, err)
	require.Equal(t, w.ID, receipt.ID)
	ids := make([]job.ID, len(receipt.Jobs))
	for i, one := range receipt.Jobs {
		ids[i] = one.ID
	}
	return ids
}

// run claims the job, which must be the only one due, and ends it.
func run(t testing.TB, s *Store, id job.ID, outcome job.OutcomeKind, result string) job.Claimed {
	t.Helper()
	_, err := s.Promote(t.Context(), 1000)
	require.NoError(t, err)
	s.marks = newLowWaterMarks()
	claimed := claim(t, s, 1)
	require.Len(t, claimed, 1)
	require.Equal(t, id, claimed[0].JobID)
	settlement := as(claimed[0], outcome)
	if result != "" {
		settlement.Result = json.RawMessage(result)
	}
	require.Equal(t, []job.SettleResult{job.Settled}, settle(t, s, settlement))
	follow1(t, s)
	requireSound(t, s)
	return claimed[0]
}

func requireNothingDue(t testing.TB, s *Store) {
	t.Helper()
	_, err := s.Promote(t.Context(), 1000)
	require.NoError(t, err)
	s.marks = newLowWaterMarks()
	require.Empty(t, claim(t, s, 1000))
}

func stateOf(t testing.TB, s *Store, id job.ID) job.WorkflowState {
	t.Helper()
	found, err := s.Workflow(t.Context(), id)
	require.NoError(t, err)
	return found.State()
}

func TestAJobOfAWorkflowStartsWhenThoseBeforeItHaveSucceeded(t *testing.T) {
	s := open(t)
	w := workflow(t, named(t, "extract"), named(t, "left", 0), named(t, "right", 0), named(t, "join", 1, 2))
	w.OnComplete = new(submission(t))
	ids := submitWorkflow(t, s, w)
	require.Equal(t, job.Created, get(t, s, ids[1]).State)

	require.Nil(t, run(t, s, ids[0], job.Success, `{"rows": 3}`).Predecessors)
	left := run(t, s, ids[1], job.Success, `1`)
	require.Equal(t, []job.Predecessor{{Name: "extract", ID: ids[0], Succeeded: true, Result: []byte(`{"rows": 3}`)}}, left.Predecessors)
	require.Equal(t, job.WorkflowRunning, stateOf(t, s, w.ID))
	run(t, s, ids[2], job.Success, `2`)
	join := run(t, s, ids[3], job.Success, "")
	require.Equal(t, []job.Predecessor{
		{Name: "left", ID: ids[1], Succeeded: true, Result: []byte(`1`)},
		{Name: "right", ID: ids[2], Succeeded: true, Result: []byte(`2`)},
	}, join.Predecessors)
	last := run(t, s, ids[4], job.Success, "")
	require.Len(t, last.Predecessors, 4)
	require.Equal(t, "join", last.Predecessors[3].Name)
	require.True(t, last.Predecessors[3].Succeeded)
	require.Equal(t, job.WorkflowSucceeded, stateOf(t, s, w.ID))

	detail, err := s.WorkflowDetail(t.Context(), w.ID)
	require.NoError(t, err)
	require.Len(t, detail.Steps, 5)
	require.Equal(t, []job.ID{ids[1], ids[2]}, detail.Steps[3].After)
	require.True(t, detail.Steps[4].OnComplete)
	require.Equal(t, job.Succeeded, detail.Steps[4].State)
}

func TestADeadJobOfAWorkflowHoldsThoseAfterIt(t *testing.T) {
	s := open(t)
	w := workflow(t, named(t, "a"), named(t, "b", 0))
	w.OnComplete = new(submission(t))
	ids := submitWorkflow(t, s, w)
	run(t, s, ids[0], job.PermanentFailure, "")
	requireNothingDue(t, s)
	require.Equal(t, job.WorkflowStuck, stateOf(t, s, w.ID))
	_, err := s.Requeue(t.Context(), ids[0])
	require.NoError(t, err)
	require.Equal(t, job.WorkflowRunning, stateOf(t, s, w.ID))
	run(t, s, ids[0], job.Success, "")
	run(t, s, ids[1], job.Success, "")
	run(t, s, ids[2], job.Success, "")
	require.Equal(t, job.WorkflowSucceeded, stateOf(t, s, w.ID))
}

func TestOnDeathDecidesWhatBecomesOfThoseAfterADeadJob(t *testing.T) {
	s := open(t)
	steps := []job.WorkflowStep{named(t, "dies"), named(t, "skips", 0), named(t, "after", 1), named(t, "cancels", 0), named(t, "gone", 3), named(t, "gone too", 4)}
	steps[1].OnDeath, steps[3].OnDeath = job.OnDeathSkip, job.OnDeathCancel
	w := workflow(t, steps...)
	ids := submitWorkflow(t, s, w)
	run(t, s, ids[0], job.PermanentFailure, "")
	after := run(t, s, ids[2], job.Success, "")
	require.Equal(t, []job.Predecessor{{Name: "skips", ID: ids[1]}}, after.Predecessors)
	for i, reason := range map[int]string{1: "skipped: dies died", 3: "canceled: dies died", 4: "canceled: cancels was canceled", 5: "canceled: gone was canceled"} {
		detail, err := s.Detail(t.Context(), ids[i])
		require.NoError(t, err)
		require.Equal(t, job.Canceled, detail.State, i)
		require.Equal(t, reason, detail.LastError)
	}
	require.Equal(t, job.WorkflowStuck, stateOf(t, s, w.ID))
	require.NoError(t, s.CancelWorkflow(t.Context(), w.ID))
	_, err := s.SweepWorkflows(t.Context(), []job.ID{w.ID})
	require.NoError(t, err)
	require.Equal(t, job.WorkflowCanceled, stateOf(t, s, w.ID))
	require.ErrorIs(t, s.CancelWorkflow(t.Context(), w.ID), job.ErrWrongState)
}

func TestAWorkflowIsStoredOnce(t *testing.T) {
	s := open(t)
	w := workflow(t, named(t, "a"), named(t, "b", 0))
	w.IdempotencyKey = "nightly"
	first, err := s.SubmitWorkflow(t.Context(), w)
	require.NoError(t, err)
	again, err := s.SubmitWorkflow(t.Context(), w)
	require.NoError(t, err)
	require.Equal(t, first.ID, again.ID)
	require.False(t, again.Replayed)

	replay := workflow(t, named(t, "a"), named(t, "b", 0))
	replay.IdempotencyKey = "nightly"
	second, err := s.SubmitWorkflow(t.Context(), replay)
	require.NoError(t, err)
	require.Equal(t, job.WorkflowReceipt{ID: first.ID, CreatedAt: first.CreatedAt, Replayed: true}, second)
	replay.Jobs[1].After = nil
	_, err = s.SubmitWorkflow(t.Context(), replay)
	require.ErrorIs(t, err, job.ErrKeyReused)
	require.Equal(t, 2, ask[int](t, s, "select count(*) from jobs"))
	require.Equal(t, 1, ask[int](t, s, "select count(*) from workflows"))
}

func TestAJobThatWaitsForOthersCannotBeStartedEarly(t *testing.T) {
	s := open(t)
	ids := submitWorkflow(t, s, workflow(t, named(t, "a"), named(t, "b", 0)))
	_, err := s.Release(t.Context(), ids[1])
	require.ErrorIs(t, err, job.ErrWrongState)
	require.ErrorContains(t, err, "waits for a of its workflow")
	now := time.Duration(0)
	_, _, err = s.Edit(t.Context(), ids[1], job.Edit{Delay: &now})
	require.ErrorIs(t, err, job.ErrWrongState)
	require.ErrorContains(t, err, "waits for a of its workflow")
	priority := int16(7)
	_, _, err = s.Edit(t.Context(), ids[1], job.Edit{Priority: &priority})
	require.NoError(t, err)
	detail, err := s.Detail(t.Context(), ids[1])
	require.NoError(t, err)
	require.Equal(t, []job.Wait{{Reason: job.WaitPredecessors, Message: "waits for a of its workflow"}}, detail.Waits)

	_, err = s.Hold(t.Context(), ids[1])
	require.NoError(t, err)
	run(t, s, ids[0], job.Success, "")
	requireNothingDue(t, s)
	_, err = s.Release(t.Context(), ids[1])
	require.NoError(t, err)
	run(t, s, ids[1], job.Success, "")
}

func TestTheTimeOfAJobThatWaitsCountsOnceTheOthersHaveEnded(t *testing.T) {
	s := open(t)
	steps := []job.WorkflowStep{named(t, "a"), named(t, "delayed", 0), named(t, "late", 0), named(t, "held", 0)}
	steps[1].Delay, steps[2].RunAt, steps[3].Hold = time.Hour, time.Now().Add(48*time.Hour), true
	ids := submitWorkflow(t, s, workflow(t, steps...))
	run(t, s, ids[0], job.Success, "")
	requireNothingDue(t, s)
	due := func(i int) time.Duration {
		return time.Duration(ask[float64](t, s, "select extract(epoch from run_at - now())::float8 from jobs where job_id = $1", postgres.UUID(ids[i])) * 1e9)
	}
	require.InDelta(t, time.Hour, due(1), float64(time.Minute))
	require.InDelta(t, 48*time.Hour, due(2), float64(time.Minute))
	require.True(t, ask[bool](t, s, "select run_at = 'infinity' from timers where job_id = $1", postgres.UUID(ids[3])))
	requireSound(t, s)
}

// A round that waits for its turn began before the jobs ended that it follows up.
func TestADelayIsNoShorterIfTheFollowerHadToWait(t *testing.T) {
	s := open(t)
	steps := []job.WorkflowStep{named(t, "a"), named(t, "delayed", 0)}
	steps[1].Delay = time.Hour
	ids := submitWorkflow(t, s, workflow(t, steps...))
	other, err := pgx.Connect(t.Context(), urlOf(s))
	require.NoError(t, err)
	defer func() { _ = other.Close(context.WithoutCancel(t.Context())) }()
	tx, err := other.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), sql.Text("lock_following"))
	require.NoError(t, err)

	followed := make(chan error, 1)
	go func() {
		_, err := s.Follow(context.Background(), job.FollowPlan{})
		followed <- err
	}()
	require.Eventually(t, func() bool {
		return ask[bool](t, s, "select exists (select from pg_locks where locktype = 'advisory' and not granted and database = (select oid from pg_database where datname = current_database()))")
	}, patience, 10*time.Millisecond)
	settled(t, s, claim(t, s, 1)[0], job.Success)
	ended := ask[time.Time](t, s, "select clock_timestamp()")
	require.NoError(t, tx.Rollback(t.Context()))
	require.NoError(t, <-followed)
	due := ask[time.Time](t, s, "select run_at from jobs where job_id = $1", postgres.UUID(ids[1]))
	require.False(t, due.Before(ended.Add(time.Hour)), "due at %s, and the job before ended at %s", due, ended)
}

func TestAHeldWorkflowStartsNothingUntilItIsReleased(t *testing.T) {
	s := open(t)
	steps := []job.WorkflowStep{named(t, "runs"), named(t, "queued"), named(t, "later"), named(t, "after", 0)}
	steps[2].Delay = time.Hour
	w := workflow(t, steps...)
	ids := submitWorkflow(t, s, w)
	running := claim(t, s, 1)
	require.Equal(t, ids[0], running[0].JobID)
	require.NoError(t, s.HoldWorkflow(t.Context(), w.ID))
	require.Equal(t, job.WorkflowHeld, stateOf(t, s, w.ID))
	settled(t, s, running[0], job.Success)
	follow1(t, s)
	requireNothingDue(t, s)
	requireSound(t, s)
	require.NoError(t, s.ReleaseWorkflow(t.Context(), w.ID))
	_, err := s.SweepWorkflows(t.Context(), []job.ID{w.ID})
	require.NoError(t, err)
	_, err = s.Promote(t.Context(), 10)
	require.NoError(t, err)
	s.marks = newLowWaterMarks()
	require.Len(t, claim(t, s, 10), 2)
	require.Greater(t, ask[float64](t, s, "select extract(epoch from run_at - now())::float8 from jobs where job_id = $1", postgres.UUID(ids[2])), 3000.0)
	requireSound(t, s)
}

func TestEndsThatNobodyToldAreSweptUp(t *testing.T) {
	s := open(t)
	ids := submitWorkflow(t, s, workflow(t, named(t, "a"), named(t, "b", 0)))
	s.marks = newLowWaterMarks()
	c := claim(t, s, 1)[0]
	c.Followed = false // as an orchestrator that knows nothing of followed jobs
	settled(t, s, c, job.Success)
	follow1(t, s)
	requireNothingDue(t, s)
	unfinished, err := s.UnfinishedWorkflows(t.Context(), job.ID{}, 10, false)
	require.NoError(t, err)
	require.Len(t, unfinished, 1)
	for range 2 {
		_, err = s.SweepWorkflows(t.Context(), unfinished)
		require.NoError(t, err)
	}
	run(t, s, ids[1], job.Success, "")
}

func TestResultsOfPredecessorsAreBounded(t *testing.T) {
	s := open(t)
	large := `"` + strings.Repeat("x", job.MaxPredecessorBytes/2) + `"`
	ids := submitWorkflow(t, s, workflow(t, named(t, "a"), named(t, "b"), named(t, "c"), named(t, "d", 0, 1, 2)))
	run(t, s, ids[0], job.Success, `1`)
	run(t, s, ids[1], job.Success, large)
	run(t, s, ids[2], job.Success, large)
	d := run(t, s, ids[3], job.Success, "")
	require.Equal(t, []byte(`1`), d.Predecessors[0].Result)
	require.Len(t, d.Predecessors[1].Result, len(large))
	require.Equal(t, job.Predecessor{Name: "c", ID: ids[2], Succeeded: true, Omitted: true}, d.Predecessors[2])
}

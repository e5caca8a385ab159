package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func requireRefused(t testing.TB, err error, why string) {
	t.Helper()
	require.ErrorIs(t, err, job.ErrWrongState)
	require.ErrorContains(t, err, why)
}

func TestNoJobOfAHeldWorkflowIsStartedByHand(t *testing.T) {
	s := open(t)
	w := workflow(t, named(t, "dies"), named(t, "waits"))
	ids := submitWorkflow(t, s, w)
	settled(t, s, claim(t, s, 1)[0], job.PermanentFailure)
	follow1(t, s)
	require.NoError(t, s.HoldWorkflow(t.Context(), w.ID))
	const held = "the workflow of the job is held"
	for _, delay := range []time.Duration{0, time.Hour} {
		_, _, err := s.Edit(t.Context(), ids[1], job.Edit{Delay: &delay})
		requireRefused(t, err, held)
	}
	priority := int16(7)
	_, _, err := s.Edit(t.Context(), ids[1], job.Edit{Priority: &priority})
	require.NoError(t, err)
	_, err = s.Release(t.Context(), ids[1])
	requireRefused(t, err, held)
	_, err = s.Requeue(t.Context(), ids[0])
	requireRefused(t, err, held)
	requeued, err := s.Redrive(t.Context(), job.DeadLetterFilter{Limit: 10})
	require.NoError(t, err)
	require.Empty(t, requeued)
	requireNothingDue(t, s)
	requireSound(t, s)

	require.NoError(t, s.ReleaseWorkflow(t.Context(), w.ID))
	_, err = s.Requeue(t.Context(), ids[0])
	require.NoError(t, err)
	_, err = s.SweepWorkflows(t.Context(), []job.ID{w.ID})
	require.NoError(t, err)
	_, err = s.Promote(t.Context(), 10)
	require.NoError(t, err)
	s.marks = newLowWaterMarks()
	require.Len(t, claim(t, s, 10), 2)
}

func TestADeadJobOfACanceledWorkflowStaysDead(t *testing.T) {
	s := open(t)
	w := workflow(t, named(t, "dies"), named(t, "runs"))
	ids := submitWorkflow(t, s, w)
	settled(t, s, claim(t, s, 2)[0], job.PermanentFailure)
	follow1(t, s)
	require.NoError(t, s.CancelWorkflow(t.Context(), w.ID))
	_, err := s.Requeue(t.Context(), ids[0])
	requireRefused(t, err, "the workflow of the job was canceled")
	requeued, err := s.Redrive(t.Context(), job.DeadLetterFilter{Limit: 10})
	require.NoError(t, err)
	require.Empty(t, requeued)
	requireNothingDue(t, s)
}

func TestAJobIsNotRequeuedWhileItsWorkflowIsBeingCanceled(t *testing.T) {
	s := open(t)
	w := workflow(t, named(t, "dies"))
	ids := submitWorkflow(t, s, w)
	settled(t, s, claim(t, s, 1)[0], job.PermanentFailure)
	follow1(t, s)
	commit := locked(t, s, "update workflows set canceled_at = now()")
	wait := after(func() error {
		_, err := s.Requeue(t.Context(), ids[0])
		return err
	})
	awaitBlocked(t, s, 1)
	commit()
	requireRefused(t, wait(), "the workflow of the job was canceled")
	requireSound(t, s)
}

func TestRetriesGoOnInAHeldWorkflow(t *testing.T) {
	s := open(t)
	w := workflow(t, named(t, "a"))
	ids := submitWorkflow(t, s, w)
	settled(t, s, claim(t, s, 1)[0], job.Failure)
	now := time.Duration(0)
	_, _, err := s.Edit(t.Context(), ids[0], job.Edit{Delay: &now})
	require.NoError(t, err)
	require.Equal(t, job.Queued, get(t, s, ids[0]).State)
	require.NoError(t, s.HoldWorkflow(t.Context(), w.ID))
	require.Equal(t, job.Queued, get(t, s, ids[0]).State)
	run(t, s, ids[0], job.Success, "")
}

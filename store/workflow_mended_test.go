package store

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestEveryWorkflowThatIsBeingCanceledHasItsTurn(t *testing.T) {
	s := open(t)
	want := make(map[job.ID]bool)
	for range cancelingWorkflows + 1 {
		w := workflow(t, named(t, "runs"))
		submitWorkflow(t, s, w)
		claim(t, s, 1) // and does not stop
		require.NoError(t, s.CancelWorkflow(t.Context(), w.ID))
		want[w.ID] = true
	}
	named, next := make(map[job.ID]bool), job.ID{}
	for range 2 {
		done, err := s.Follow(t.Context(), job.FollowPlan{CancelingAfter: next})
		require.NoError(t, err)
		for _, id := range done.Canceling {
			named[id] = true
		}
		next = done.CancelingNext
	}
	require.Equal(t, want, named)
	require.Zero(t, next, "it begins again")
}

func TestErasedDeadJobsAreNotRequeuedWithTheirWorkflow(t *testing.T) {
	s := open(t)
	w := workflow(t, named(t, "a"), named(t, "b"))
	ids := submitWorkflow(t, s, w)
	for _, c := range claim(t, s, 2) {
		settle(t, s, as(c, job.PermanentFailure))
	}
	follow1(t, s)
	_, err := s.Erase(t.Context(), ids[0], "me", "gdpr")
	require.NoError(t, err)
	dead, err := s.OpenWorkflowJobs(t.Context(), w.ID, false, job.Dead)
	require.NoError(t, err)
	require.Equal(t, []job.ID{ids[1]}, dead)
}

func TestTheKeyOfAWorkflowOutlivesItsJobs(t *testing.T) {
	s := open(t)
	w := workflow(t, named(t, "a"))
	w.Name, w.IdempotencyKey = "import", "import-1"
	run(t, s, submitWorkflow(t, s, w)[0], job.Success, "")
	exec(t, s, "delete from jobs")
	for _, keys := range []*time.Duration{nil, new(time.Hour)} {
		_, _, err := s.TidyWorkflows(t.Context(), job.ID{}, keys)
		require.NoError(t, err)
		again := w
		again.ID, again.Jobs = newID(t), []job.WorkflowStep{named(t, "a")}
		receipt, err := s.SubmitWorkflow(t.Context(), again)
		require.NoError(t, err)
		require.True(t, receipt.Replayed)
		require.Equal(t, w.ID, receipt.ID)
	}
	found, err := s.Workflow(t.Context(), w.ID)
	require.NoError(t, err)
	require.Empty(t, found.Name)
	exec(t, s, "update workflows set finished_at = now() - interval '2 hours'")
	_, _, err = s.TidyWorkflows(t.Context(), job.ID{}, new(time.Hour))
	require.NoError(t, err)
	require.Zero(t, ask[int](t, s, "select count(*) from workflows"))
}

func TestAKeyOfAWorkflowIsNotTakenForAnID(t *testing.T) {
	s := open(t)
	w := workflow(t, named(t, "a"))
	submitWorkflow(t, s, w)
	other := workflow(t, named(t, "b"))
	other.IdempotencyKey = w.ID.String()
	submitWorkflow(t, s, other)
	third := workflow(t, named(t, "c"))
	third.IdempotencyKey = other.IdempotencyKey
	_, err := s.SubmitWorkflow(t.Context(), third)
	require.Equal(t, job.ErrKeyReused, err, "it is not an outcome that is unknown")
}

func TestFewLargeResultsAreReadForAClaim(t *testing.T) {
	s := open(t)
	const many = 10
	var steps []job.WorkflowStep
	for range many {
		steps = append(steps, named(t, ""))
	}
	w := workflow(t, steps...)
	w.OnComplete = new(submission(t))
	submitWorkflow(t, s, w)
	var all []job.Settlement
	for _, c := range claim(t, s, many) {
		one := as(c, job.Success)
		one.Result = []byte(`"` + strings.Repeat("x", 900<<10) + `"`)
		all = append(all, one)
	}
	for few := range slices.Chunk(all, 5) { // a busy machine takes long to write so much
		settle(t, s, few...)
	}
	follow1(t, s)
	_, err := s.Promote(t.Context(), 10)
	require.NoError(t, err)
	s.marks = newLowWaterMarks()
	claimed := claim(t, s, 1)
	require.Len(t, claimed, 1)
	require.Len(t, claimed[0].Predecessors, many)
	for i, one := range claimed[0].Predecessors {
		require.Equal(t, i >= 2, one.Omitted)
		require.Equal(t, i < 2, one.Result != nil)
	}
}

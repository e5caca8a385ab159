package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// shortRound is far more than a round takes, and far less than with a plan that compares all
// jobs with all others.
const shortRound = 3 * time.Second

// wide submits a workflow of a job and very many right behind it.
func wide(t *testing.T, s *Store) (id job.ID, jobs []job.ID) {
	t.Helper()
	steps := []job.WorkflowStep{named(t, "root")}
	for len(steps) < job.MaxWorkflowJobs {
		steps = append(steps, named(t, "", 0))
	}
	w := workflow(t, steps...)
	jobs = submitWorkflow(t, s, w)
	exec(t, s, "vacuum analyze")
	return w.ID, jobs
}

func TestManyJobsBehindOneAreMadeDueInAShortRound(t *testing.T) {
	s := open(t)
	_, jobs := wide(t, s)
	require.Equal(t, []job.SettleResult{job.Settled}, settle(t, s, as(claim(t, s, 1)[0], job.Success)))
	began := time.Now()
	require.Equal(t, len(jobs)-1, follow1(t, s).Due)
	require.Less(t, time.Since(began), shortRound)
}

func TestManyJobsBehindOneAreCanceledInShortRounds(t *testing.T) {
	s := open(t)
	id, jobs := wide(t, s)
	_, err := s.Cancel(t.Context(), jobs[0])
	require.NoError(t, err)
	canceled := 0
	for range 2 + len(jobs)/followBatch {
		began := time.Now()
		done := follow1(t, s)
		require.Less(t, time.Since(began), shortRound)
		require.Zero(t, done.Due, "none is made due before it is canceled")
		canceled += len(done.Canceled)
	}
	require.Equal(t, len(jobs)-1, canceled)
	require.Equal(t, job.WorkflowCanceled, stateOf(t, s, id))
}

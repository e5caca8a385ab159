package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// fewRows is how many rows a round may read for each job: a few times what it needs, and far
// less than a plan that compares each job with all others.
const fewRows = 30

// rowsRead is how many rows of all tables have been read so far. Sessions count when they end,
// so this closes the store, and returns it opened anew.
func rowsRead(t *testing.T, s *Store) (opened *Store, rows int) {
	t.Helper()
	url := urlOf(s)
	s.Close()
	conn := connect(t, url)
	require.Eventually(t, func() bool {
		var others int
		require.NoError(t, conn.QueryRow(t.Context(), `select count(*) from pg_stat_activity
			where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`).Scan(&others))
		return others == 0
	}, patience, 10*time.Millisecond)
	require.NoError(t, conn.QueryRow(t.Context(), "select sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) from pg_stat_user_tables").Scan(&rows))
	require.NoError(t, conn.Close(t.Context()))
	return openAt(t, url), rows
}

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

func TestARoundMakesManyJobsBehindOneDueWithoutComparingAll(t *testing.T) {
	s := open(t)
	_, jobs := wide(t, s)
	require.Equal(t, []job.SettleResult{job.Settled}, settle(t, s, as(claim(t, s, 1)[0], job.Success)))
	s, before := rowsRead(t, s)
	require.Equal(t, len(jobs)-1, follow1(t, s).Due)
	_, after := rowsRead(t, s)
	require.Less(t, after-before, fewRows*len(jobs))
}

func TestRoundsCancelManyJobsBehindOneWithoutComparingAll(t *testing.T) {
	s := open(t)
	id, jobs := wide(t, s)
	_, err := s.Cancel(t.Context(), jobs[0])
	require.NoError(t, err)
	s, before := rowsRead(t, s)
	canceled := 0
	for range 2 + len(jobs)/followBatch {
		done := follow1(t, s)
		require.Zero(t, done.Due, "none is made due before it is canceled")
		canceled += len(done.Canceled)
	}
	require.Equal(t, len(jobs)-1, canceled)
	require.Equal(t, job.WorkflowCanceled, stateOf(t, s, id))
	_, after := rowsRead(t, s)
	require.Less(t, after-before, fewRows*len(jobs))
}

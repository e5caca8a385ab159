package store

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

// editingPriority holds the locks of an edit of a job's priority until it is committed.
func editingPriority(t testing.TB, s *Store, id job.ID) (commit func()) {
	t.Helper()
	return locked(t, s, sql.Text("edit_timers"), []string{id.String()}, 7, nil, nil, nil, nil, nil, nil)
}

func TestAnEditedJobIsWokenByTheEndOfTheOneBeforeIt(t *testing.T) {
	s := open(t)
	ids := submitWorkflow(t, s, workflow(t, named(t, "a"), named(t, "b", 0)))
	settled(t, s, claim(t, s, 1)[0], job.Success)
	commit := editingPriority(t, s, ids[1])
	wait := after(func() job.Following { return follow1(t, s) })
	awaitBlocked(t, s, 1)
	commit()
	require.Equal(t, 1, wait().Due)
	require.Equal(t, 7, ask[int](t, s, "select priority from jobs where job_id = $1", ids[1].String()))
	run(t, s, ids[1], job.Success, "")
}

func TestAnEditedJobIsCanceledWithTheOneBeforeIt(t *testing.T) {
	s := open(t)
	ids := submitWorkflow(t, s, workflow(t, named(t, "a"), named(t, "other"), named(t, "b", 0, 1)))
	_, err := s.Cancel(t.Context(), ids[0])
	require.NoError(t, err)
	commit := editingPriority(t, s, ids[2])
	wait := after(func() job.Following { return follow1(t, s) })
	awaitBlocked(t, s, 1)
	commit()
	require.Equal(t, []job.ID{ids[2]}, wait().Canceled)
	require.Equal(t, job.Canceled, get(t, s, ids[2]).State)
	requireSound(t, s)
}

func TestEditsAndEndsAtOnceLeaveNoJobWaiting(t *testing.T) {
	s := open(t)
	steps := []job.WorkflowStep{named(t, "a")}
	for range 100 {
		steps = append(steps, named(t, "", 0))
	}
	for range 5 {
		ids := submitWorkflow(t, s, workflow(t, steps...))
		steps = fresh(t, steps)
		s.marks = newLowWaterMarks()
		first := claim(t, s, 1000)
		var stop atomic.Bool
		var editors sync.WaitGroup
		for from := range 3 {
			editors.Go(func() {
				for i := from; !stop.Load(); i++ {
					priority := int16(i % 100)
					if _, _, err := s.Edit(t.Context(), ids[1+i%100], job.Edit{Priority: &priority}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for _, one := range first {
			if one.JobID == ids[0] {
				settled(t, s, one, job.Success)
			}
		}
		follow1(t, s)
		stop.Store(true)
		editors.Wait()
		follow1(t, s)
		require.Zero(t, ask[int](t, s, `select count(*) from workflow_jobs wj join timers t using (job_id)
			where wj.missing = 0 and t.run_at = 'infinity'`))
		requireSound(t, s)
	}
}

// fresh are the steps with new ids.
func fresh(t testing.TB, steps []job.WorkflowStep) []job.WorkflowStep {
	t.Helper()
	again := make([]job.WorkflowStep, len(steps))
	for i, one := range steps {
		again[i] = named(t, one.Name, one.After...)
	}
	return again
}

func TestADeathThatIsToldAfterTheSuccessCancelsNothing(t *testing.T) {
	s := open(t)
	steps := []job.WorkflowStep{named(t, "a"), named(t, "other"), named(t, "b", 0, 1), named(t, "c", 0, 1)}
	steps[2].OnDeath, steps[3].OnDeath = job.OnDeathCancel, job.OnDeathSkip
	ids := submitWorkflow(t, s, workflow(t, steps...))
	settled(t, s, claim(t, s, 1)[0], job.PermanentFailure)
	exec(t, s, "create table late as table ends")
	exec(t, s, "truncate ends")
	_, err := s.Requeue(t.Context(), ids[0])
	require.NoError(t, err)
	s.marks = newLowWaterMarks()
	for _, one := range claim(t, s, 2) {
		if one.JobID == ids[0] {
			settled(t, s, one, job.Success)
		}
	}
	follow1(t, s)
	exec(t, s, "insert into ends table late")
	another := submitWorkflow(t, s, workflow(t, named(t, "ends in the same round")))
	_, err = s.Cancel(t.Context(), another[0])
	require.NoError(t, err)
	require.Empty(t, follow1(t, s).Canceled)
	require.Equal(t, job.Created, get(t, s, ids[2]).State)
	require.Equal(t, job.Created, get(t, s, ids[3]).State)
}

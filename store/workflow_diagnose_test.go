package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestADiagnosisFindsWorkflowsThatDoNotGoOn(t *testing.T) {
	s := open(t)
	w := workflow(t, named(t, "a"), named(t, "held", 0), named(t, "stuck", 0), named(t, "waits", 2))
	ids := submitWorkflow(t, s, w)
	over := workflow(t, named(t, "ended"))
	ended := submitWorkflow(t, s, over)
	_, err := s.Hold(t.Context(), ids[1])
	require.NoError(t, err)
	for _, c := range claim(t, s, 2) {
		settled(t, s, c, job.Success)
	}
	// As if the follower had lost what it has to do.
	exec(t, s, "truncate ends")
	exec(t, s, "update workflow_jobs set missing = 0 where job_id = any($1)", uuids(ids[1:3]))
	require.Equal(t, job.Fine, diagnose(t, s)["workflows"].Severity, "it was only just now")
	began := time.Now()
	exec(t, s, "update jobs set updated_at = now() - interval '2 minutes', finished_at = case when finished_at is not null then now() - interval '2 minutes' end")
	check := diagnose(t, s)["workflows"]
	require.Equal(t, job.Problem, check.Severity)
	require.Equal(t, "Workflows do not go on in 2 places.", check.Summary)
	require.Len(t, check.Details, 2)
	requireSaid(t, fmt.Sprint(check.Details), fmt.Sprintf("workflow %s: job %s should have become due 2m0s ago", w.ID, ids[2]), time.Since(began))
	requireSaid(t, fmt.Sprint(check.Details), fmt.Sprintf("workflow %s: all its jobs ended 2m0s ago", over.ID), time.Since(began))

	require.NoError(t, s.HoldWorkflow(t.Context(), w.ID))
	_, err = s.SweepWorkflows(t.Context(), []job.ID{over.ID})
	require.NoError(t, err)
	require.Equal(t, job.Fine, diagnose(t, s)["workflows"].Severity, "one is held, the other has finished")
	require.Equal(t, job.Succeeded, get(t, s, ended[0]).State)
}

func TestADiagnosisKnowsWhyAWorkflowWithDeadJobsWaits(t *testing.T) {
	s := open(t)
	steps := []job.WorkflowStep{named(t, "dies")}
	for range 20 {
		steps = append(steps, named(t, "", 0))
	}
	w := workflow(t, steps...)
	ids := submitWorkflow(t, s, w)
	settled(t, s, claim(t, s, 1)[0], job.PermanentFailure)
	follow1(t, s)
	const aged = "update jobs set updated_at = updated_at - interval '2 minutes', finished_at = finished_at - interval '2 minutes'"
	exec(t, s, aged)
	require.Equal(t, job.Fine, diagnose(t, s)["workflows"].Severity, "it waits for a requeue")
	exec(t, s, "update workflow_jobs set missing = 0")
	check := diagnose(t, s)["workflows"]
	require.Equal(t, "Workflows do not go on in more than 10 places.", check.Summary)
	require.Len(t, check.Details, 10)

	require.NoError(t, s.CancelWorkflow(t.Context(), w.ID))
	require.Equal(t, job.Fine, diagnose(t, s)["workflows"].Severity, "its jobs are being canceled")
	_, err := s.CancelPortion(t.Context(), w.ID)
	require.NoError(t, err)
	exec(t, s, aged)
	exec(t, s, "update workflows set canceled_at = canceled_at - interval '2 minutes'")
	require.Contains(t, fmt.Sprint(diagnose(t, s)["workflows"].Details), "all its jobs ended 2m0")
	require.Equal(t, job.Dead, get(t, s, ids[0]).State)
}

package runtime_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestAnAttemptThatFailsAtOnceLeavesItsCheckpointToTheNext(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	const jobs, steps = 200, 5
	many(t, db, jobs)
	saving := func(r *run) job.Outcome {
		if r.Attempt > 1 {
			return job.Outcome{Kind: job.Success, Result: r.Assignment.Checkpoint}
		}
		for step := 1; step <= steps; step++ {
			r.Reporter.Checkpoint(fmt.Appendf(nil, `{"job": %q, "step": %d}`, r.JobID, step))
			r.Progress(fmt.Appendf(nil, "%d", step))
		}
		return job.Outcome{Kind: job.Failure}
	}
	s := supervise(t, playing("p", 60, saving, echo))
	launch(t, db, s)
	awaitAll(t, db, jobs, job.Succeeded)
	require.Len(t, s.started(), 2*jobs)
	require.Equal(t, jobs, ask[int](t, db,
		"select count(*) from jobs where result->>'job' = job_id::text and (result->>'step')::int = $1 and progress::text = '5'", steps))
}

func TestProgressIsSeenWhileTheHandlerRuns(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	id := given(t, db)
	s := supervise(t, playing("p", 1, stops, echo))
	launch(t, db, s)
	r := awaitRun(t, s, 1)
	for _, progress := range []string{`{"percent": 10}`, `{"percent": 20}`} {
		r.Progress([]byte(progress))
		await(t, func() bool { return string(view(t, db, id).Progress) == progress })
		require.Equal(t, job.Running, view(t, db, id).State)
	}
}

func TestACheckpointThatCannotBeStoredHarmsNeitherItsJobNorOthers(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	const jobs = 20
	many(t, db, jobs)
	s := supervise(t, playing("p", jobs, func(r *run) job.Outcome {
		switch {
		case r.Attempt > 1:
			return job.Outcome{Kind: job.Success, Result: r.Assignment.Checkpoint}
		case r.Fence == 1 && r.JobID[15]%2 == 0:
			r.Reporter.Checkpoint([]byte(`"kept"`))
			r.Progress([]byte("50"))
		default:
			r.Reporter.Checkpoint([]byte("{not JSON"))
		}
		return job.Outcome{Kind: job.Failure}
	}, echo))
	launch(t, db, s)
	awaitAll(t, db, jobs, job.Succeeded)
	for _, r := range s.started() {
		if r.Attempt == 2 {
			require.Equal(t, r.JobID[15]%2 == 0, r.Assignment.Checkpoint != nil, "%s", r.JobID)
		}
	}
}

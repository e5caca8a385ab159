package runtime_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestTheNextAttemptGetsTheCheckpointOfOneThatFailedAtOnce(t *testing.T) {
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

func TestACheckpointThatCannotBeStoredDoesNotAffectJobs(t *testing.T) {
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

func TestLogLinesAreKeptWhileTheHandlerRunsAndWhenItEnds(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	id := given(t, db)
	ended := make(chan struct{})
	s := supervise(t, playing("p", 1, func(r *run) job.Outcome {
		if r.Attempt > 1 {
			r.Log(job.LogLine{Level: job.LogError, Message: "again"})
			return job.Outcome{Kind: job.Success}
		}
		r.Log(job.LogLine{Time: time.Now(), Level: job.LogInfo, Message: "first", Attributes: []byte(`{"a": "\u0000"}`)})
		<-ended
		r.Log(job.LogLine{Level: job.LogWarn, Message: "last"})
		return job.Outcome{Kind: job.Crash, Message: "signal: killed"}
	}, echo))
	launch(t, db, s)
	await(t, func() bool { return logged(t, db, id) == "1/1 [first]" })
	require.Equal(t, job.Running, view(t, db, id).State)
	close(ended)
	awaitState(t, db, id, job.Succeeded)
	require.Equal(t, "1/1 [first last], 2/2 [again]", logged(t, db, id))
}

func TestManyLogsAtOnceAreKeptApart(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	const jobs = 200
	many(t, db, jobs)
	s := supervise(t, playing("p", jobs, func(r *run) job.Outcome {
		r.Log(job.LogLine{Level: job.LogInfo, Message: r.JobID.String()})
		return job.Outcome{Kind: job.Success}
	}, echo))
	launch(t, db, s)
	awaitAll(t, db, jobs, job.Succeeded)
	require.Equal(t, jobs, ask[int](t, db, "select count(*) from attempt_logs where lines->0->>'message' = job_id::text and fence = 1"))
}

func TestAnAttemptWithoutLinesLeavesNoLog(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	id := given(t, db)
	s := supervise(t, playing("p", 1, succeeds, echo))
	launch(t, db, s)
	awaitState(t, db, id, job.Succeeded)
	require.Zero(t, ask[int](t, db, "select count(*) from attempt_logs"))
}

func TestALogThatCannotBeStoredDoesNotAffectJobs(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	const jobs = 20
	many(t, db, jobs)
	s := supervise(t, playing("p", jobs, func(r *run) job.Outcome {
		line := job.LogLine{Level: job.LogInfo, Message: "good"}
		if r.JobID[15]%2 == 0 {
			line.Attributes = []byte("{not JSON")
		}
		r.Log(line)
		return job.Outcome{Kind: job.Success}
	}, echo))
	launch(t, db, s)
	awaitAll(t, db, jobs, job.Succeeded)
	for _, r := range s.started() {
		require.Equal(t, r.JobID[15]%2 == 1, logged(t, db, r.JobID) != "")
	}
}

// logged is a job's log in short: number/fence [messages], attempt by attempt.
func logged(t testing.TB, db *database, id job.ID) string {
	t.Helper()
	logs, err := db.Logs(t.Context(), id, job.LogFilter{Limit: 10})
	require.NoError(t, err)
	var short []string
	for _, log := range logs {
		var messages []string
		for _, line := range log.Lines {
			messages = append(messages, line.Message)
		}
		short = append(short, fmt.Sprintf("%d/%d %s", log.Number, log.Fence, messages))
	}
	return strings.Join(short, ", ")
}

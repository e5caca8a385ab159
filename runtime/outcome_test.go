package runtime_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestAnOutcomeThatCannotBeStoredFailsItsOwnJobAlone(t *testing.T) {
	t.Parallel()
	const each = 20
	for name, c := range map[string]struct {
		outcome job.Outcome
		want    job.State
		code    string
		message string
	}{
		"a result that is not JSON": {
			job.Outcome{Kind: job.Success, Result: []byte("{oops")}, job.Dead, "bad_result", "not JSON",
		},
		"a result that is not UTF-8": {
			job.Outcome{Kind: job.Success, Result: []byte("\"\xff\"")}, job.Dead, "bad_result", "not JSON",
		},
		"an error with a NUL": {
			job.Outcome{Kind: job.PermanentFailure, Code: "E\x00", Message: "a\x00b", Stack: "s\x00"},
			job.Dead, "E\uFFFD", "a\uFFFDb",
		},
		"an error that is not UTF-8": {
			job.Outcome{Kind: job.PermanentFailure, Code: "E", Message: "caf\xe9"}, job.Dead, "E", "caf\uFFFD",
		},
		"an error of any length": {
			job.Outcome{Kind: job.PermanentFailure, Code: "E", Message: strings.Repeat("é", 1<<20)}, job.Dead, "E", "éé",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := fresh(t)
			bad := given(t, db, func(s *job.Submission) { s.Payload = []byte(`"bad"`) })
			good := many(t, db, each)
			// All are running before any ends, so that they settle together.
			together := make(chan struct{})
			s := supervise(t, playing("p", each+1, func(r *run) job.Outcome {
				select {
				case <-together:
				case <-r.killed:
				}
				if string(r.Payload) == `"bad"` {
					return c.outcome
				}
				return job.Outcome{Kind: job.Success, Result: []byte(`"fine"`)}
			}, echo))
			launch(t, db, s)
			awaitRun(t, s, each+1)
			close(together)
			awaitState(t, db, bad, c.want)
			awaitAll(t, db, len(good), job.Succeeded)
			ended := attempts(t, db, bad)
			require.Len(t, ended, 1)
			require.Equal(t, job.PermanentFailure, ended[0].Outcome)
			require.Equal(t, c.code, ended[0].Code)
			require.Contains(t, ended[0].Error, c.message)
			require.LessOrEqual(t, len(ended[0].Error), 8<<10)
			require.Equal(t, each, ask[int](t, db, "select count(*) from job_attempts where job_id <> $1", uuid(bad)))
			requireSettled(t, db)
		})
	}
}

func TestAnOutcomeThatCanNeverBeStoredIsLeftToTheReaper(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	odd := given(t, db)
	s := supervise(t, playing("p", 5, inTurn(ending(job.Outcome{Kind: "never heard of"}), succeeds), echo))
	launch(t, db, s, leasing(6*time.Second))
	awaitRun(t, s, 1)
	others := many(t, db, 10)
	awaitAll(t, db, len(others)+1, job.Succeeded)
	require.Equal(t, []job.OutcomeKind{job.LeaseExpired, job.Success}, outcomes(t, db, odd))
	requireSettled(t, db)
}

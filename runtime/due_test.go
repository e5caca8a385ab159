package runtime_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// glance is how much earlier than its first look at the list a claim's time
// may be: the clock of a statement is read when it arrives.
const glance = 100 * time.Millisecond

// Every wait is judged by the database's clock. Polls are an hour apart, so
// that what is due is found because somebody reckoned with it.
func TestARetryWaitsForItsDelayAndNotMuchLonger(t *testing.T) {
	t.Parallel()
	const usual, asked = 400 * time.Millisecond, 700 * time.Millisecond
	wish := asked
	for name, c := range map[string]struct {
		first   job.Outcome
		atLeast time.Duration
		charged int
	}{
		"as the policy says":       {job.Outcome{Kind: job.Failure}, usual, 2},
		"as the handler wishes":    {job.Outcome{Kind: job.Failure, RetryAfter: &wish}, asked, 2},
		"a snooze is not charged":  {job.Outcome{Kind: job.Snoozed, RetryAfter: &wish}, asked, 1},
		"a crash waits as well":    {job.Outcome{Kind: job.Crash}, usual, 2},
		"a timeout waits, usually": {job.Outcome{Kind: job.Timeout}, usual, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := fresh(t)
			id := given(t, db)
			s := supervise(t, playing("p", 1, inTurn(ending(c.first), succeeds), echo))
			launch(t, db, s, waiting(usual), polling(aLongTime))
			awaitState(t, db, id, job.Succeeded)
			both := attempts(t, db, id)
			require.Len(t, both, 2)
			require.GreaterOrEqual(t, both[1].ClaimedAt.Sub(both[0].EndedAt), c.atLeast-glance)
			require.Equal(t, c.charged, charged(t, db, id))
			require.Equal(t, c.charged, s.started()[1].Attempt)
		})
	}
}

func TestATimeoutIsRetriedAtOnceWhereThePolicySaysSo(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	id := given(t, db)
	policy := job.RetryPolicy{Backoff: job.Fixed, InitialDelay: aLongTime, JitterMin: 1, JitterMax: 1, ImmediateAfterTimeout: true}
	s := supervise(t, playing("p", 1, inTurn(ending(job.Outcome{Kind: job.Timeout}), succeeds), echo))
	launch(t, db, s, polling(aLongTime), func(c *runtime.Config) { c.Resolve = retrying(policy) })
	awaitState(t, db, id, job.Succeeded)
}

func TestScheduledJobsStartWhenTheyAreDue(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	s := supervise(t, playing("p", 5, succeeds, echo))
	p := launch(t, db, s, polling(aLongTime))
	const delay = 500 * time.Millisecond
	far, err := p.Submit(t.Context(), submission(t, func(s *job.Submission) { s.Delay = aLongTime }))
	require.NoError(t, err)
	require.Equal(t, job.Created, far.State)
	near, err := p.Submit(t.Context(), submission(t, func(s *job.Submission) { s.Delay = delay }))
	require.NoError(t, err)
	at := ask[time.Time](t, db, "select now() + $1::interval", delay)
	dated, err := p.Submit(t.Context(), submission(t, func(s *job.Submission) { s.RunAt = at }))
	require.NoError(t, err)

	awaitState(t, db, near.ID, job.Succeeded)
	awaitState(t, db, dated.ID, job.Succeeded)
	require.GreaterOrEqual(t, attempts(t, db, near.ID)[0].ClaimedAt.Sub(near.CreatedAt), delay-glance)
	require.GreaterOrEqual(t, attempts(t, db, dated.ID)[0].ClaimedAt.Sub(at), -glance)
	require.Equal(t, job.Created, view(t, db, far.ID).State)
}

func TestAHeldJobStartsWhenItIsReleased(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	s := supervise(t, playing("p", 5, succeeds, echo))
	p := launch(t, db, s, polling(aLongTime))
	held, err := p.Submit(t.Context(), submission(t, func(s *job.Submission) { s.Hold = true }))
	require.NoError(t, err)
	other, err := p.Submit(t.Context(), submission(t))
	require.NoError(t, err)
	awaitState(t, db, other.ID, job.Succeeded)
	require.Equal(t, job.Created, view(t, db, held.ID).State)
	_, err = db.Release(t.Context(), held.ID)
	require.NoError(t, err)
	p.JobsReady()
	awaitState(t, db, held.ID, job.Succeeded)
}

func TestAnyNumberOfDueJobsIsQueued(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	const jobs = 1200
	many(t, db, jobs, func(s *job.Submission) { s.Delay = 10 * time.Millisecond })
	launch(t, db, supervise(t, playing("p", 100, succeeds, echo)), polling(aLongTime))
	awaitAll(t, db, jobs, job.Succeeded)
	requireSettled(t, db)
}

package runtime_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// neverExpiring is a store whose expirer finds nothing.
type neverExpiring struct{ runtime.Store }

func (neverExpiring) Expire(context.Context, int) ([]job.Lapsed, int, error) { return nil, 0, nil }

func expiringIn(ttl time.Duration) func(*job.Submission) {
	return func(s *job.Submission) { s.TTL = ttl }
}

// Polls are an hour apart: the submission says when to look.
func TestAJobThatHasNotStartedInTimeIsCanceledAndItsClientsAreTold(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	measured, counts := metered(t)
	p := launch(t, db, supervise(t, playing("p", 1, succeeds, "OTHER")), polling(aLongTime), measured)
	other := launch(t, neverExpiring{openAt(t, db.url)}, supervise(t), polling(aLongTime)) // p counts what it cancels
	const ttl = 300 * time.Millisecond
	receipt, err := p.Submit(t.Context(), submission(t, expiringIn(ttl)))
	require.NoError(t, err)
	later, err := p.Submit(t.Context(), submission(t, expiringIn(aLongTime)))
	require.NoError(t, err)

	for _, client := range []*process{p, other} {
		ended, err := client.Await(t.Context(), receipt.ID)
		require.NoError(t, err)
		require.Equal(t, job.Canceled, ended.State)
		require.GreaterOrEqual(t, ended.FinishedAt.Sub(ended.CreatedAt), ttl)
	}
	detail, err := db.Detail(t.Context(), receipt.ID)
	require.NoError(t, err)
	require.Equal(t, job.LapsedReason(detail.ExpiresAt), detail.LastError)
	require.WithinDuration(t, detail.CreatedAt.Add(ttl), detail.ExpiresAt, 0)
	require.Empty(t, detail.Attempts)
	require.Equal(t, job.Queued, view(t, db, later.ID).State)
	await(t, func() bool { return counts.of("holdfast.jobs.expired")["other"] == 1 })
	requireSettled(t, db)
}

func TestAJobThatHasStartedInTimeRunsOn(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	s := supervise(t, playing("p", 1, inTurn(fails, succeeds), echo))
	p := launch(t, db, s, waiting(8500*time.Millisecond))
	receipt, err := p.Submit(t.Context(), submission(t, expiringIn(8*time.Second))) // also a busy machine starts it by then
	require.NoError(t, err)
	awaitState(t, db, receipt.ID, job.Succeeded)
	require.Equal(t, []job.OutcomeKind{job.Failure, job.Success}, outcomes(t, db, receipt.ID))
}

func TestAJobThatIsClaimedTooLateIsNotStarted(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	measured, counts := metered(t)
	at := ask[time.Time](t, db, "select now()")
	late := given(t, db, func(s *job.Submission) { s.ExpiresAt = at })
	inTime := given(t, db, expiringIn(aLongTime))
	s := supervise(t, playing("p", 5, succeeds, echo))
	launch(t, neverExpiring{db}, s, measured)
	awaitState(t, db, late, job.Canceled)
	awaitState(t, db, inTime, job.Succeeded)
	require.Len(t, s.started(), 1)
	detail, err := db.Detail(t.Context(), late)
	require.NoError(t, err)
	require.Equal(t, job.LapsedReason(at), detail.LastError)
	require.Len(t, detail.Attempts, 1)
	require.Equal(t, job.CodeExpired, detail.Attempts[0].Code)
	require.Equal(t, job.CancelConfirmed, detail.Attempts[0].Outcome)
	await(t, func() bool { return counts.of("holdfast.jobs.expired")[echo] == 1 })
	requireSettled(t, db)
}

func TestAJobThatExpiresWhileItWaitsForASlotIsNotStarted(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	measured, counts := metered(t)
	release := make(chan struct{})
	many(t, db, 300) // short ones, so that the worker prefetches
	s := supervise(t, &handlers{name: "p", slots: 1, plays: map[string]script{echo: succeeds, "BLOCK": until(release)}})
	p := launch(t, neverExpiring{db}, s, ahead(time.Second), polling(aLongTime), measured)
	awaitAll(t, db, 300, job.Succeeded)
	_, err := p.Submit(t.Context(), submission(t, ofType("BLOCK")))
	require.NoError(t, err)
	await(t, func() bool { return len(s.started()) == 301 }, "the only slot is taken")
	waiting, err := p.Submit(t.Context(), submission(t, expiringIn(8*time.Second))) // also a busy machine claims it by then
	require.NoError(t, err)
	awaitState(t, db, waiting.ID, job.Running)
	await(t, func() bool {
		return ask[bool](t, db, "select now() > expires_at from jobs where job_id = $1", [16]byte(waiting.ID))
	}, "it expires")
	close(release)
	awaitState(t, db, waiting.ID, job.Canceled)
	require.Len(t, s.started(), 301)
	detail, err := db.Detail(t.Context(), waiting.ID)
	require.NoError(t, err)
	require.Equal(t, job.LapsedReason(detail.ExpiresAt), detail.LastError)
	require.Equal(t, job.CodeExpired, detail.Attempts[len(detail.Attempts)-1].Code)
	await(t, func() bool { return counts.of("holdfast.jobs.expired")[echo] == 1 })
	awaitAll(t, db, 301, job.Succeeded)
	requireSettled(t, db)
}

package runtime_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

// A claim whose commit was canceled while it waited for the standby is one that a
// failover undoes: the next one has the same fence.
func TestAClaimStartsNoHandlerBeforeTheStandbyHasIt(t *testing.T) {
	t.Parallel()
	pair := pgtest.NewPair(t)
	proxy := pgtest.Between(t, pair.Primary)
	ledger := openAt(t, proxy.URL)
	held := submission(t, func(j *job.Submission) { j.Hold = true })
	require.NoError(t, ledger.Submit(t.Context(), []job.Submission{held})[0].Err)
	s := supervise(t, playing("p", 1, succeeds, echo))
	launch(t, ledger, s)

	pair.Stall()
	released := make(chan error, 1)
	go func() {
		_, err := ledger.Release(t.Context(), held.ID)
		released <- err
	}()
	old := &database{pool: poolOf(t, pair.Primary)}
	for ask[int](t, old, "select count(*) from leases") == 0 {
		pair.AwaitWaiting(t, 1)
		pair.CancelWaiting(t)
	}
	require.ErrorIs(t, <-released, job.ErrOutcomeUnknown)
	pair.AwaitWaiting(t, 1) // the claimer lets go of what it may have claimed
	require.Empty(t, s.started())

	pair.Promote(t)
	proxy.Lead(t, pair.Standby)
	proxy.Cut()
	await(t, func() bool {
		_, err := ledger.Release(t.Context(), held.ID)
		return err == nil || !errors.Is(err, job.ErrUnavailable)
	}, "the job is held on the new primary, and released")
	now := &database{Store: ledger, pool: poolOf(t, pair.Standby)}
	awaitAll(t, now, 1, job.Succeeded)
	require.Len(t, s.started(), 1)
	require.Equal(t, int64(1), ask[int64](t, now, "select fence from jobs"))
	requireSettled(t, now)
}

func poolOf(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

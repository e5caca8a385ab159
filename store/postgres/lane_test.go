package postgres

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

func TestReadsAreDividedIntoLanes(t *testing.T) {
	for connections, want := range map[int32][]int{1: {1, 1, 1}, 2: {1, 1, 1}, 3: {1, 1, 1}, 6: {2, 2, 1}, 30: {14, 10, 5}} {
		lookups, lists, figures := lanes(nil, connections)
		require.Equal(t, want, []int{cap(lookups.running), cap(lists.running), cap(figures.running)}, "%d", connections)
		if connections > 3 {
			require.EqualValues(t, connections-1, want[0]+want[1]+want[2], "one is for a diagnosis")
		}
	}
}

func TestAReadGetsItsTurnInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLane(nil, 1, 1)
		require.NoError(t, l.enter(t.Context()))
		waited := later(func() error { return l.enter(t.Context()) })
		synctest.Wait()
		<-l.running
		require.NoError(t, waited())
		require.Empty(t, l.waiting)
	})
}

func TestAReadIsRefusedWhenItsTurnDoesNotComeInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLane(nil, 1, 1)
		require.NoError(t, l.enter(t.Context()))
		began := time.Now()
		waited := later(func() error { return l.enter(t.Context()) })
		synctest.Wait()
		require.ErrorIs(t, l.enter(t.Context()), job.ErrBusy, "too many wait already")
		require.Zero(t, time.Since(began))
		require.ErrorIs(t, waited(), job.ErrBusy)
		require.Equal(t, turnWithin, time.Since(began))

		ctx, cancel := context.WithCancel(t.Context())
		waited = later(func() error { return l.enter(ctx) })
		synctest.Wait()
		cancel()
		require.ErrorIs(t, waited(), context.Canceled)
	})
}

func TestAReadThatTakesTooLongIsGivenUp(t *testing.T) {
	db, err := Open(t.Context(), Config{URL: pgtest.EmptyURL(t)})
	require.NoError(t, err)
	t.Cleanup(db.Close)
	err = db.Lists.Snapshot(t.Context(), "list", "set local statement_timeout = 20", func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "select pg_sleep(60)")
		return err
	})
	require.ErrorIs(t, err, job.ErrBusy)
	require.Empty(t, db.Lists.running)
}

// later starts f and returns a function that waits for its result.
func later[T any](f func() T) (wait func() T) {
	done := make(chan T, 1)
	go func() { done <- f() }()
	return func() T { return <-done }
}

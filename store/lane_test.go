package store

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestReadsAreDividedIntoLanes(t *testing.T) {
	for connections, want := range map[int32][]int{1: {1, 1, 1}, 2: {1, 1, 1}, 3: {1, 1, 1}, 6: {2, 2, 1}, 30: {14, 10, 5}} {
		lookups, lists, figures := lanes(nil, connections)
		require.Equal(t, want, []int{cap(lookups.turns), cap(lists.turns), cap(figures.turns)}, "%d", connections)
		if connections > 3 {
			require.EqualValues(t, connections-1, want[0]+want[1]+want[2], "one is for a diagnosis")
		}
	}
}

func TestAReadGetsItsTurnInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLane(nil, 1, 1)
		require.NoError(t, l.enter(t.Context()))
		waited := after(func() error { return l.enter(t.Context()) })
		synctest.Wait()
		<-l.turns
		require.NoError(t, waited())
		require.Empty(t, l.queue)
	})
}

func TestAReadIsRefusedWhenItsTurnDoesNotComeInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLane(nil, 1, 1)
		require.NoError(t, l.enter(t.Context()))
		began := time.Now()
		waited := after(func() error { return l.enter(t.Context()) })
		synctest.Wait()
		require.ErrorIs(t, l.enter(t.Context()), job.ErrBusy, "too many wait already")
		require.Zero(t, time.Since(began))
		require.ErrorIs(t, waited(), job.ErrBusy)
		require.Equal(t, turnWithin, time.Since(began))

		ctx, cancel := context.WithCancel(t.Context())
		waited = after(func() error { return l.enter(ctx) })
		synctest.Wait()
		cancel()
		require.ErrorIs(t, waited(), context.Canceled)
	})
}

// Whoever lists jobs in a loop holds up nobody who looks one up, nor figures.
func TestListsLeaveOtherReadsTheirConnections(t *testing.T) {
	s := open(t)
	id := given(t, s)
	release := make(chan struct{})
	var waits []func() error
	for range cap(s.lists.turns) + 3 {
		waits = append(waits, after(func() error {
			return s.lists.read(context.Background(), "list", func(*pgxpool.Conn) error { <-release; return nil })
		}))
	}
	require.Eventually(t, func() bool { return len(s.lists.turns) == cap(s.lists.turns) }, patience, time.Millisecond)
	get(t, s, id)
	_, err := s.Detail(t.Context(), id)
	require.NoError(t, err)
	_, err = s.Metrics(t.Context(), time.Minute)
	require.NoError(t, err)
	close(release)
	for _, wait := range waits {
		require.NoError(t, wait())
	}
}

func TestAReadThatTakesTooLongIsGivenUp(t *testing.T) {
	s := open(t)
	err := s.lists.read(t.Context(), "list", func(conn *pgxpool.Conn) error {
		_, err := conn.Exec(t.Context(), "set statement_timeout = 20")
		require.NoError(t, err)
		_, err = conn.Exec(t.Context(), "select pg_sleep(60)")
		return translate("list", err)
	})
	require.ErrorIs(t, err, job.ErrBusy)
	require.Empty(t, s.lists.turns)
}

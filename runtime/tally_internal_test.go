package runtime

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/jobs"
)

// inbox is a store that has so many tallies.
type inbox struct {
	Store
	waiting, aged int
	failures      int // still to come
}

func (i *inbox) RollUpTallies(_ context.Context, limit int) (int, error) {
	if i.failures > 0 {
		i.failures--
		return 0, errors.New("away")
	}
	rolledUp := min(limit, i.waiting)
	i.waiting -= rolledUp
	return rolledUp, nil
}

func (i *inbox) AgeTallies(context.Context) error { i.aged++; return nil }

func TestTalliesAreRolledUpUntilNoneIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &inbox{waiting: 3*rollUpBatch + 7}
		f := &tallyRollUp{store: store, pace: new(jobs.Pace), log: slog.New(slog.DiscardHandler)}
		ctx, cancel := context.WithTimeout(t.Context(), 10*ageInterval+ageInterval/2)
		defer cancel()
		f.run(ctx)
		require.Zero(t, store.waiting)
		require.InDelta(t, 10, store.aged, 1, "once a minute")
	})
}

func TestARollUpThatFailsIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &inbox{waiting: 1, failures: 2}
		f := &tallyRollUp{store: store, pace: new(jobs.Pace), log: slog.New(slog.DiscardHandler)}
		ctx, cancel := context.WithTimeout(t.Context(), 4*rollUpInterval)
		defer cancel()
		f.run(ctx)
		require.Zero(t, store.waiting)
	})
}

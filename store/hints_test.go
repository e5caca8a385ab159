package store

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestAListenerHearsEveryHint(t *testing.T) {
	s := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	ready := make(chan struct{})
	heard := make(chan job.Hint, 10)
	wait := after(func() error {
		return s.Listen(ctx, func() { close(ready) }, func(h job.Hint) { heard <- h })
	})
	<-ready
	for _, hint := range job.Hints() {
		require.NoError(t, s.Send(t.Context(), hint))
		require.Equal(t, hint, <-heard)
	}
	cancel()
	require.ErrorIs(t, wait(), context.Canceled)
}

func TestAListenerWhoseConnectionEndsSaysSo(t *testing.T) {
	s := open(t)
	ready := make(chan struct{})
	wait := after(func() error {
		return s.Listen(context.Background(), func() { close(ready) }, func(job.Hint) {})
	})
	<-ready
	exec(t, s, "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'holdfast listener' and datname = current_database()")
	require.ErrorIs(t, wait(), job.ErrUnavailable)
}

package store

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestAListenerHearsEveryHint(t *testing.T) {
	s := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	ready := make(chan struct{})
	heard := make(chan job.Notice, 10)
	wait := after(func() error {
		return s.Listen(ctx, func() { close(ready) }, func(n job.Notice) { heard <- n })
	})
	<-ready
	passes := func(sent, want job.Notice) {
		t.Helper()
		require.NoError(t, s.Send(t.Context(), sent))
		require.Equal(t, want, <-heard)
	}
	for _, hint := range job.Hints() {
		passes(job.Notice{Hint: hint}, job.Notice{Hint: hint})
	}
	some := job.Notice{Hint: job.JobsReady, Types: []string{"A", `b "'\\,`, "ü"}}
	passes(some, some)
	from := job.Notice{Hint: job.JobsAwaited, From: "who says so"}
	passes(from, from)
	many := job.Notice{Hint: job.JobsReady, Types: slices.Repeat([]string{"MORE_THAN_A_PAYLOAD_HAS_ROOM_FOR"}, 300)}
	passes(many, job.Notice{Hint: job.JobsReady})
	exec(t, s, "select pg_notify('holdfast_ready', 'what a later version says')")
	require.Equal(t, job.Notice{Hint: job.JobsReady}, <-heard)
	cancel()
	require.ErrorIs(t, wait(), context.Canceled)
}

func TestAListenerWhoseConnectionEndsSaysSo(t *testing.T) {
	s := open(t)
	ready := make(chan struct{})
	wait := after(func() error {
		return s.Listen(context.Background(), func() { close(ready) }, func(job.Notice) {})
	})
	<-ready
	exec(t, s, "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'holdfast listener' and datname = current_database()")
	require.ErrorIs(t, wait(), job.ErrUnavailable)
}

package plugin

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
)

func TestADrainedSessionBeginsNothing(t *testing.T) {
	s := newSession(map[string]Handler{"NOTHING": Handle("NOTHING", nothing)}, limitsOf(nil), nil)
	s.drain()
	s.begin(&handlerv1.Start{Handle: 1, JobType: "NOTHING", TimeoutMs: 60_000, LeaseMs: 60_000})
	require.Empty(t, s.attempts)
	require.True(t, s.out.pending.empty())
}

func TestASessionMayBeToldToDrainTwice(t *testing.T) {
	s := newSession(nil, limitsOf(nil), nil)
	s.drain()
	require.NotPanics(t, s.drain)
	require.True(t, s.isIdle())
}

// What a handler has left running with its context ends with the attempt.
func TestAnAttemptsContextEndsWithIt(t *testing.T) {
	left := make(chan context.Context, 1)
	o := serving(t, Handle("LEAVE", func(ctx context.Context, _ Job[any]) error { left <- ctx; return nil }))
	require.NotNil(t, o.run("LEAVE", `null`).GetSucceeded())
	ctx := <-left
	select {
	case <-ctx.Done():
		require.ErrorIs(t, context.Cause(ctx), context.Canceled)
	case <-time.After(patience):
		require.Fail(t, "the context goes on")
	}
}

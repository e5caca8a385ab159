package jobs

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// slow is a store that passes a hint on the second try; the first lasts until it is
// abandoned.
type slow struct {
	Store
	tries int
}

func (s *slow) Send(ctx context.Context, _ job.Notice) error {
	if s.tries++; s.tries > 1 {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func TestAHintThatTheEndInterruptsIsSentAtLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(slow)
		hints := newHints(store, slog.New(slog.DiscardHandler), unmeasured(t), new(Pace))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			hints.run(ctx)
			close(ended)
		}()
		hints.Send(job.JobsReady)
		synctest.Wait()
		require.Equal(t, 1, store.tries)
		cancel()
		<-ended
		hints.Flush(t.Context())
		require.Equal(t, 2, store.tries)
	})
}

// What is raised while a hint is on its way to be sent goes with it, and needs no other.
func TestAHintThatSaysNothingNewIsNotSent(t *testing.T) {
	store := &slow{tries: 1}
	hints := newHints(store, slog.New(slog.DiscardHandler), unmeasured(t), new(Pace))
	hints.Offer([]string{"A"})
	require.Equal(t, []string{"A"}, hints.out[job.JobsReady].Take())
	hints.Flush(t.Context())
	require.Equal(t, 1, store.tries)
	hints.Offer([]string{"A"})
	hints.Flush(t.Context())
	require.Equal(t, 2, store.tries)
}

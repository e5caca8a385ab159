package runtime

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// stoppedFor is why the attempt was asked to stop; empty if it was not.
func stoppedFor(a *attempt) job.CancelReason {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stopped
}

func TestATimeLimitThatIsUsedAgainStopsItsNewAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := new(timeLimits)
		fast, slow := &attempt{ends: new(ended)}, &attempt{ends: new(ended)}
		first := limits.start(fast, time.Minute)
		time.Sleep(30 * time.Second)
		limits.end(first)
		require.Nil(t, first.of, "what has ended must not be kept")

		limits.start(slow, time.Minute) // the first, unless the pool has dropped it
		time.Sleep(59 * time.Second)
		synctest.Wait()
		require.Empty(t, stoppedFor(slow), "the time of the first one does not count")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, job.CancelTimeout, stoppedFor(slow))
		require.Empty(t, stoppedFor(fast))
	})
}

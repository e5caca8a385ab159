package runtime

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestTheWaitBetweenFailedLaunchesGrowsToAMinute(t *testing.T) {
	l := newLaunches()
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		require.Equal(t, want*time.Second, l.failed("p"))
	}
	require.Equal(t, time.Second, l.failed("another"))
	l.delayed("p", job.Outcome{Kind: job.Crash}, false)
	require.Equal(t, time.Second, l.failed("p"), "one came up")
}

func TestAnAttemptThatIsStoppedBeforeItsProcessIsUpIsReleasedWithoutAWait(t *testing.T) {
	l := newLaunches()
	outcome := job.Outcome{Kind: job.Released, Code: job.CodeNoProcess}
	require.Nil(t, l.delayed("p", outcome, true).RetryAfter)
	require.NotNil(t, l.delayed("p", outcome, false).RetryAfter)
}

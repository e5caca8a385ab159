package runtime

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// ended keeps how attempts have ended.
type ended struct{ outcomes []job.Outcome }

func (e *ended) finish(_ *attempt, outcome job.Outcome) { e.outcomes = append(e.outcomes, outcome) }

func TestAnAttemptThatIsStoppedWhileItsStartFailsHasNotRun(t *testing.T) {
	ends := new(ended)
	a := &attempt{shared: &shared{ends: ends}, provenUntil: time.Now().Add(time.Hour)}
	_, ok := a.begin(0)
	require.True(t, ok)
	a.stop(job.CancelShutdown)
	require.Empty(t, ends.outcomes, "it may be running")
	require.False(t, a.notStarted())
	a.stop(job.CancelLeaseLost)
	require.Len(t, ends.outcomes, 1)
	require.Equal(t, job.Released, ends.outcomes[0].Kind)
	began, _, stopped := a.last()
	require.True(t, began.IsZero())
	require.True(t, stopped)
}

package job_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// legal is the state machine as the requirements tell it, written down here a
// second time on purpose.
var legal = map[job.State]map[job.State]string{
	job.Created: {
		job.Queued:   "due, or released",
		job.Canceled: "canceled before it was due",
	},
	job.Queued: {
		job.Running:  "claimed",
		job.Created:  "postponed before its first attempt",
		job.Retry:    "postponed before another attempt",
		job.Canceled: "canceled before it was claimed",
	},
	job.Running: {
		job.Succeeded: "the handler finished",
		job.Retry:     "failed recoverably with attempts left",
		job.Dead:      "failed for good, or attempts exhausted",
		job.Queued:    "given back unharmed",
		job.Canceled:  "cancel confirmed",
	},
	job.Retry: {
		job.Queued:   "the backoff is over",
		job.Dead:     "an operator's word",
		job.Canceled: "canceled before its next attempt",
	},
	job.Dead: {
		job.Queued: "requeued by an operator",
	},
}

func TestEveryPairOfStatesIsLegalOrNot(t *testing.T) {
	for _, from := range job.States() {
		for _, to := range job.States() {
			why, expected := legal[from][to]
			require.Equal(t, expected, from.CanBecome(to), "%s to %s: %s", from, to, why)
		}
	}
}

func TestNothingLeavesAFinalStateButARequeue(t *testing.T) {
	for _, from := range job.States() {
		var ways []job.State
		for _, to := range job.States() {
			if from.CanBecome(to) {
				ways = append(ways, to)
			}
		}
		switch {
		case from == job.Dead:
			require.True(t, from.Final())
			require.Equal(t, []job.State{job.Queued}, ways)
		case from.Final():
			require.Empty(t, ways, from)
		default:
			require.NotEmpty(t, ways, from)
		}
	}
}

func TestAnUnknownStateHasNoSuccessors(t *testing.T) {
	for _, to := range job.States() {
		require.False(t, job.State("paused").CanBecome(to))
		require.False(t, to.CanBecome("paused"))
	}
	require.False(t, job.State("paused").Final())
}

func TestPublicStatusOfEveryState(t *testing.T) {
	statuses := map[job.State]job.Status{
		job.Created:   job.StatusPending,
		job.Queued:    job.StatusPending,
		job.Retry:     job.StatusPending,
		job.Running:   job.StatusRunning,
		job.Succeeded: job.StatusCompleted,
		job.Dead:      job.StatusFailed,
		job.Canceled:  job.StatusCanceled,
	}
	require.Len(t, statuses, len(job.States()))
	for _, state := range job.States() {
		require.Equal(t, statuses[state], state.Status(), state)
	}
}

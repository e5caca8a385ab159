package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestAcceptanceCountsWaitingAndRunningJobs(t *testing.T) {
	l := newLedger(t) // three that have ended, one queued, one scheduled, one held for a tenant
	found := acceptance{l.store}
	unfinished, err := found.Unfinished(t.Context(), "ECHO")
	require.NoError(t, err)
	require.EqualValues(t, 3, unfinished)
	for range samplePayloads {
		l.submit(t, "MORE", func(s *job.Submission) { s.Payload = []byte(`{"n":2}`) })
	}
	_, err = l.store.Claim(t.Context(), "worker-1", []string{"ECHO"}, 1, time.Minute)
	require.NoError(t, err)
	unfinished, err = found.Unfinished(t.Context(), "ECHO")
	require.NoError(t, err)
	require.EqualValues(t, 3+samplePayloads, unfinished)
	unfinished, err = found.Unfinished(t.Context(), "OTHER")
	require.NoError(t, err)
	require.Zero(t, unfinished)

	payloads, err := found.Waiting(t.Context(), "ECHO")
	require.NoError(t, err)
	require.Len(t, payloads, samplePayloads)
	for _, payload := range payloads {
		require.Equal(t, "MORE", l.names[payload.JobID.String()], "the newest come first")
		require.JSONEq(t, `{"n":2}`, string(payload.JSON))
	}
	payloads, err = found.Waiting(t.Context(), "OTHER")
	require.NoError(t, err)
	require.Empty(t, payloads)
}

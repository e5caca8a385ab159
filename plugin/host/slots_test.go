package host

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestTheLimitOfATypeHoldsForEachProcess(t *testing.T) {
	config := misbehaving("good", "-types", "TEST,OTHER", "-bound", "1", "-concurrency", "3")
	config.Processes = 2
	h := startHost(t, nil, config)
	h.awaitUp("good", 2)
	room := func() map[string]int { return h.Pools()[0].Room }
	require.Equal(t, map[string]int{"TEST": 2}, room())

	var running []*report
	var runs []job.Run
	for range 2 {
		run, r := h.begin("good", `{"do":"sleep","ms":60000}`)
		running, runs = append(running, r), append(runs, run)
	}
	require.Equal(t, map[string]int{"TEST": 0}, room())
	_, err := h.Start("good", assignment(`{"do":"sleep","ms":60000}`), newReport())
	require.True(t, errors.Is(err, ErrNoSlot), "%v", err)
	other := assignment(`{"do":"sleep","ms":60000}`)
	other.Type = "OTHER"
	for range 4 {
		r := newReport()
		run, err := h.Start("good", other, r)
		require.NoError(t, err)
		running, runs = append(running, r), append(runs, run)
	}
	require.Zero(t, h.free("good"))
	for _, run := range runs {
		run.Cancel(job.CancelShutdown)
	}
	for _, r := range running {
		h.outcome(r)
	}
	require.Equal(t, map[string]int{"TEST": 2}, room())
	require.Equal(t, 6, h.free("good"))
}

func TestAPoolWithoutTypeLimitsHasNone(t *testing.T) {
	h := startHost(t, nil, misbehaving("good"))
	h.awaitUp("good", 1)
	require.Nil(t, h.Pools()[0].Room)
}

package host

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestMoreRunIsolatedAsMoreSurvive(t *testing.T) {
	config := misbehaving("good")
	config.Concurrency, config.Processes = 3, 2
	h := startHost(t, nil, config)
	h.awaitUp("good", 2)
	for n := range 8 {
		want := min(initiallyIsolated+n, 6)
		h.eventually(func() bool { return h.freeIsolated("good") == want }, "one more for each, up to what its processes may have at once")
		_, r := h.beginIsolated("good", `{}`)
		require.Equal(t, job.Success, h.outcome(r).Kind)
	}
	var reports []*report
	for range 6 {
		_, r := h.beginIsolated("good", `{"do":"sleep","ms":60000}`)
		reports = append(reports, r)
	}
	for _, r := range reports {
		require.Empty(t, r.done)
	}
	require.Zero(t, h.freeIsolated("good"))
}

func TestFewerRunIsolatedAfterACrash(t *testing.T) {
	h := startHost(t, nil, misbehaving("good"))
	h.awaitUp("good", 1)
	for range 6 {
		_, r := h.beginIsolated("good", `{}`)
		require.Equal(t, job.Success, h.outcome(r).Kind)
	}
	for _, left := range []int{4, 2, 2} {
		_, r := h.beginIsolated("good", do("exit"))
		require.Equal(t, job.Crash, h.outcome(r).Kind)
		h.eventually(func() bool { return h.freeIsolated("good") == left }, "half as many may run isolated")
	}
}

// Suspects do not wait for the backoff of the processes that attempts share.
func TestSuspectsRunWhileNoOtherProcessIsUp(t *testing.T) {
	h := startHost(t, func(s *Settings) { s.Backoff.Min, s.Backoff.Max = time.Minute, time.Hour }, misbehaving("good"))
	require.Equal(t, job.Crash, h.run("good", do("exit")).Kind)
	h.eventually(func() bool { return h.Pools()[0].Down }, "its process is gone")
	require.Zero(t, h.Pools()[0].Slots)
	for range 3 {
		_, r := h.beginIsolated("good", `{}`)
		require.Equal(t, job.Success, h.outcome(r).Kind)
	}
	require.True(t, h.Pools()[0].Down)

	_, r := h.beginIsolated("good", do("exit"))
	require.Equal(t, job.Crash, h.outcome(r).Kind)
	h.eventually(func() bool { return h.status("good").Crashes == 2 }, "the crash is counted")
	require.Zero(t, h.freeIsolated("good"), "it may be the handler: others wait")
}

func TestTheLimitOfATypeBoundsIsolatedAttemptsToo(t *testing.T) {
	config := misbehaving("good", "-types", "TEST,OTHER", "-bound", "1")
	h := startHost(t, nil, config)
	h.awaitUp("good", 1)
	require.Equal(t, map[string]int{"TEST": 1}, h.Pools()[0].RoomIsolated)
	h.beginIsolated("good", `{"do":"sleep","ms":60000}`)
	require.Equal(t, map[string]int{"TEST": 0}, h.Pools()[0].RoomIsolated)
	one := assignment(`{}`)
	one.Isolated = true
	_, err := h.Start("good", one, newReport())
	require.ErrorIs(t, err, ErrNoSlot)
	one.Type = "OTHER"
	r := newReport()
	_, err = h.Start("good", one, r)
	require.NoError(t, err)
	require.Equal(t, job.Success, h.outcome(r).Kind)
}

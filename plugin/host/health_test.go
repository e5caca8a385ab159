package host

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// The connection of a dying process may break in the middle of a health check, before
// the process is reaped. The death says more.
func TestADeathIsNotReportedAsBadHealth(t *testing.T) {
	t.Parallel()
	h := startHost(t, func(s *Settings) { s.HealthPeriod = time.Millisecond }, misbehaving("good"))
	for range 10 {
		_, r := h.begin("good", do("ignore"))
		require.NoError(t, syscall.Kill(h.status("good").PIDs[0], syscall.SIGKILL))
		require.Contains(t, h.outcome(r).Message, "killed")
	}
}

// A process needs both its stream and its health check to do work. If one of them
// fails, the process is killed.
func TestAProcessNeedsBothItsStreamAndItsHealth(t *testing.T) {
	t.Parallel()
	for what, want := range map[string]string{
		"close-stream": "stream closed: ",
		"sicken":       "health check: its status is NOT_SERVING",
	} {
		t.Run(what, func(t *testing.T) {
			// Health checks are frequent, and still succeed when the stream has ended.
			h := startHost(t, func(s *Settings) { s.HealthPeriod = 5 * time.Millisecond }, misbehaving("plain", "-mode", "plain"))
			_, bystander := h.begin("plain", `{"do":"sleep","ms":60000}`)
			pid := h.status("plain").PIDs[0]
			_, r := h.begin("plain", do(what))
			if what == "sicken" {
				require.Equal(t, job.Success, h.outcome(r).Kind, "the stream works")
			}
			outcome := h.outcome(bystander)
			require.Equal(t, job.Crash, outcome.Kind)
			require.Contains(t, outcome.Message, want)
			require.False(t, alive(pid))
			require.Equal(t, job.Success, h.run("plain", `{}`).Kind)
			require.EqualValues(t, 1, bystander.finished.Load())
		})
	}
}

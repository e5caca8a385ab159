package host

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The connection of a process that dies may break before the process is reaped,
// in the middle of a health check. How it died says more.
func TestADeathIsNotTakenForBadHealth(t *testing.T) {
	h := startHost(t, func(s *Settings) { s.HealthPeriod = time.Millisecond }, misbehaving("good"))
	for range 10 {
		_, r := h.begin("good", do("ignore"))
		require.NoError(t, syscall.Kill(h.status("good").PIDs[0], syscall.SIGKILL))
		require.Contains(t, h.outcome(r).Message, "killed")
	}
}

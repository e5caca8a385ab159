package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAProcessThatGotTheServersPidIsNotKilled(t *testing.T) {
	// While its child holds the log, not everybody knows that the server has ended.
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "sleep 600 & exit 0")
	cmd.SysProcAttr = childAttributes(account{}, syscall.SIGKILL)
	p, err := launch(cmd, 10*time.Millisecond, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	group := p.pid
	t.Cleanup(func() { _ = syscall.Kill(-group, syscall.SIGKILL) })
	require.Eventually(t, func() bool {
		return errors.Is(syscall.Kill(p.pid, 0), syscall.ESRCH)
	}, patience, time.Millisecond)

	stranger := exec.CommandContext(t.Context(), "sh", "-c", "sleep 600 & wait")
	stranger.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, stranger.Start())
	strangers := stranger.Process.Pid
	t.Cleanup(func() {
		_ = syscall.Kill(-strangers, syscall.SIGKILL)
		_ = stranger.Wait()
	})
	require.Eventually(t, func() bool { return len(childrenOf(strangers)) == 1 }, patience, time.Millisecond)
	child := childrenOf(strangers)[0]

	p.pid = strangers
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, p.end(ended))
	for _, pid := range []int{strangers, child} {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		require.NoError(t, err)
		require.Contains(t, string(stat), ") S ", "it sleeps on, neither stopped nor dead")
	}
}

//go:build linux

package stage

import (
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/rig"
)

// The init of a guest may have another child first, for a moment.
func TestTheOrchestratorIsTheChildThatRunsItsProgram(t *testing.T) {
	parent := exec.CommandContext(t.Context(), "bash", "-c", "sleep 600 & (exec -a /here/orchestrator sleep 600) & wait")
	parent.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, parent.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-parent.Process.Pid, syscall.SIGKILL)
		_ = parent.Wait()
	})
	var found rig.Process
	require.Eventually(t, func() (ok bool) {
		found, ok = childThatRuns(parent.Process.Pid, "/here/orchestrator")
		return ok && len(rig.Children(parent.Process.Pid)) == 2
	}, time.Minute, 10*time.Millisecond)
	require.Equal(t, []string{"/here/orchestrator", "600"}, found.Args())
	_, ok := childThatRuns(parent.Process.Pid, "/here/another")
	require.False(t, ok)
}

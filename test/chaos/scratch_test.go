//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/rig"
)

func TestOnlyWhatKilledRunsHaveLeftIsRemoved(t *testing.T) {
	base := t.TempDir()
	scratchOf := func(name, owner string) string {
		dir := filepath.Join(base, scratchName+name)
		require.NoError(t, os.Mkdir(dir, 0o755))
		if owner != "" {
			require.NoError(t, os.WriteFile(filepath.Join(dir, ownerName), []byte(owner), 0o600))
		}
		return dir
	}
	self, err := rig.ProcessOf(os.Getpid())
	require.NoError(t, err)
	gone := exec.CommandContext(t.Context(), "true")
	require.NoError(t, gone.Run())
	scratchOf("running", owner(self))
	scratchOf("new", "")
	killed := scratchOf("killed", owner(rig.Process{PID: gone.Process.Pid}))
	another := scratchOf("another", owner(rig.Process{PID: self.PID})) // its process has this id now
	require.ElementsMatch(t, []string{killed, another}, abandoned(base))
	removeScratch(killed)
	require.NoDirExists(t, killed)
}

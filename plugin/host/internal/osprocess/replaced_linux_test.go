package osprocess

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAProcessNeverExecutesAnotherVersion(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	require.NoError(t, err)
	text, err := os.ReadFile(sleep)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "plugin")
	started, took := 0, time.Duration(0)
	for n := range 100 {
		install := func(name string) {
			syscall.ForkLock.RLock()
			defer syscall.ForkLock.RUnlock()
			require.NoError(t, os.WriteFile(name, text, 0o700))
		}
		install(path)
		install(path + ".new")
		pinned := pin(t, path)
		p := prepared(t, Spec{Binary: pinned, Args: []string{"1000"}})
		replaced, at := make(chan error), took*time.Duration(n)/50
		go func() {
			time.Sleep(at) // every moment of the start, and after it
			replaced <- os.Rename(path+".new", path)
		}()
		began := time.Now()
		err := p.Start(t.Context())
		took = max(took, time.Since(began))
		require.NoError(t, <-replaced)
		if err != nil {
			require.ErrorContains(t, err, "was replaced during the start")
			continue
		}
		started++
		executed, err := os.Stat(fmt.Sprintf("/proc/%d/exe", p.PID()))
		require.NoError(t, err)
		require.True(t, os.SameFile(pinned.Info(), executed), "it executes another version")
		p.End()
	}
	require.Positive(t, started)
}

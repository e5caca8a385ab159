package embedded

import (
	"context"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAServerThatIsStuckIsKilledWithItsChildren(t *testing.T) {
	dir := tempDir(t)
	server := begin(t, Config{DataDir: dir})
	run(t, server, "create table t as select 42 as n")
	freeze(t, dir)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	began := time.Now()
	require.ErrorIs(t, server.Stop(ended), context.Canceled)
	require.Less(t, time.Since(began), soon)
	requireNothingLeft(t, dir)

	server = begin(t, Config{DataDir: dir})
	require.Equal(t, "42", query(t, server, "select n::text from t"), "recovered from the log")
}

func requireNothingLeft(t *testing.T, dir string) {
	t.Helper()
	owner, err := accountFor(dir)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		lock, err := home{dir: dir, owner: owner}.lockServer()
		require.NoError(t, err)
		return lock != nil && lock.Close() == nil
	}, patience, 5*time.Millisecond, "a process of the server is left")
}

// freeze stops the server and its children. Those that still exist continue after the
// test.
func freeze(t *testing.T, dir string) {
	t.Helper()
	pid := serverPid(t, dir)
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	frozen := append(childrenOf(pid), pid)
	require.Greater(t, len(frozen), 1)
	t.Cleanup(func() {
		for _, pid := range frozen {
			if runsIn(filepath.Join(dir, "data"), pid) {
				_ = syscall.Kill(pid, syscall.SIGCONT)
			}
		}
	})
	for _, pid := range frozen {
		require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	}
}

package embedded

import (
	"context"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func TestStuckChildrenOfAServerThatIsDeadAreKilled(t *testing.T) {
	dir := tempDir(t)
	server := begin(t, Config{DataDir: dir})
	run(t, server, "create table t as select 42 as n")
	shell := exec.CommandContext(t.Context(), "sleep", "600")
	shell.Dir = filepath.Join(dir, "data")
	require.NoError(t, shell.Start())
	t.Cleanup(func() { _ = shell.Wait() }) // its context has ended
	freeze(t, dir)
	require.NoError(t, syscall.Kill(serverPid(t, dir), syscall.SIGKILL))

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, server.Stop(ended))
	requireNothingLeft(t, dir)
	require.True(t, runsIn(shell.Dir, shell.Process.Pid), "somebody else's process in the data directory lives on")

	server = begin(t, Config{DataDir: dir})
	require.Equal(t, "42", query(t, server, "select n::text from t"), "recovered from the log")
}

func TestTheNextServerIsLeftAloneByTheStopOfADeadOne(t *testing.T) {
	dir := tempDir(t)
	dead := begin(t, Config{DataDir: dir})
	require.NoError(t, syscall.Kill(serverPid(t, dir), syscall.SIGKILL))
	next := begin(t, Config{DataDir: dir})
	conn, err := pgx.Connect(t.Context(), next.URL())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.Background())) }()
	require.Error(t, dead.Stop(t.Context()))
	require.NoError(t, conn.Ping(t.Context()), "its connections would end with any of its processes")
}

package embedded

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestACanceledStartDoesNotWaitForAStuckServer(t *testing.T) {
	dir, log := tempDir(t), &logged{}
	end(t, begin(t, Config{DataDir: dir}))
	cfg := Config{DataDir: dir, BinDir: stuckBinaries(t, dir), Log: log.logger()}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		_, err := Start(ctx, cfg)
		failed <- err
	}()
	require.Eventually(t, func() bool { return strings.Contains(log.text(), "it is stuck") }, patience, 5*time.Millisecond)
	began := time.Now()
	cancel()
	require.ErrorIs(t, <-failed, context.Canceled)
	require.Less(t, time.Since(began), soon)
}

// stuckBinaries makes a directory with a postgres that never becomes ready and ignores
// signals.
func stuckBinaries(t *testing.T, dir string) string {
	t.Helper()
	owner, err := accountFor(dir)
	require.NoError(t, err)
	installed, err := find(t.Context(), "", home{dir: dir, owner: owner})
	require.NoError(t, err)
	stuck := binaries(t, "0")
	script := fmt.Sprintf("#!/bin/sh\n"+
		"case \"$*\" in *unix_socket_directories*) trap '' INT QUIT; echo 'LOG:  it is stuck'; exec sleep 600;; esac\n"+
		"exec %s/postgres \"$@\"\n", installed.dir)
	require.NoError(t, os.WriteFile(filepath.Join(stuck, "postgres"), []byte(script), 0o755))
	return stuck
}

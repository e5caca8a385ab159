package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/store/embedded"
)

const (
	dirPattern = "holdfast-test-"
	// roomInMemory is how much data and log a test run may write.
	roomInMemory = 2 << 30
)

// startLocal starts a server from local binaries, in memory if there is room.
// It ends with this process at the latest.
func startLocal(ctx context.Context) (address string, end func(context.Context) error, err error) {
	dir, remove, err := makeDir()
	if err != nil {
		return "", nil, err
	}
	server, err := embedded.Start(ctx, embedded.Config{
		DataDir: filepath.Join(dir, "pg"), Ephemeral: true, Settings: map[string]string{"max_connections": connections},
	})
	if err != nil {
		return "", nil, errors.Join(err, remove())
	}
	return server.URL(), func(ctx context.Context) error { return errors.Join(server.Stop(ctx), remove()) }, nil
}

// Dir returns an empty directory for servers, in memory if there is room. It is removed after
// the test.
func Dir(t testing.TB) string {
	t.Helper()
	dir, remove, err := makeDir()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, remove()) })
	return dir
}

// makeDir makes a directory that this process locks until it removes it. If the
// process is killed, the next run removes the directory.
func makeDir() (dir string, remove func() error, err error) {
	base := os.TempDir()
	const memory = "/dev/shm"
	var stat syscall.Statfs_t
	if err := syscall.Statfs(memory, &stat); err == nil && stat.Bavail*uint64(stat.Bsize) >= roomInMemory {
		base = memory
	}
	sweep(base)
	if dir, err = os.MkdirTemp(base, dirPattern); err != nil {
		return "", nil, fmt.Errorf("make a directory: %w", err)
	}
	unlock, err := lock(dir)
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	remove = func() error { return errors.Join(os.RemoveAll(dir), unlock()) }
	// PostgreSQL runs as another user when the tests run as root.
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", nil, errors.Join(fmt.Errorf("open the directory: %w", err), remove())
	}
	return dir, remove, nil
}

// lock marks a directory as in use until this process ends or unlocks it.
func lock(dir string) (unlock func() error, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock: %w", err), f.Close())
	}
	return f.Close, nil
}

// sweep removes the directories of killed runs, but not those of other users.
func sweep(base string) {
	dirs, err := filepath.Glob(filepath.Join(base, dirPattern+"*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil || time.Since(info.ModTime()) < time.Minute {
			continue // it may be new and not locked yet
		}
		if unlock, err := lock(dir); err == nil {
			_ = os.RemoveAll(dir)
			_ = unlock()
		}
	}
}

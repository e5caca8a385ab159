package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// pidFile is the content of the server's own lock file.
type pidFile struct {
	pid       int
	socketDir string
	ready     bool
}

// readPidFile returns false if there is none, or if it is being written.
func readPidFile(h home) (pidFile, bool) {
	text, err := os.ReadFile(h.pidPath())
	if err != nil {
		return pidFile{}, false
	}
	// Lines: pid, data directory, start time, port, socket directory, listen
	// address, shared memory key, status.
	lines := strings.Split(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil {
		return pidFile{}, false
	}
	found := pidFile{pid: pid}
	if len(lines) >= 8 {
		found.socketDir = lines[4]
		found.ready = strings.TrimSpace(lines[7]) == "ready"
	}
	return found, true
}

func (h home) pidPath() string { return filepath.Join(h.data(), "postmaster.pid") }

// findRunning returns the URL of a healthy server that runs in the home. If there is
// none, it returns the lock that the next one inherits. It waits for a server that
// starts or stops. The caller holds the home's own lock.
func findRunning(ctx context.Context, h home) (url string, lock *os.File, err error) {
	for {
		lock, err := h.lockServer()
		if err != nil {
			return "", nil, err
		}
		state, ok := readPidFile(h)
		here := ok && runsIn(h.data(), state.pid)
		if lock != nil && !here {
			if err := h.removeStalePidFile(); err != nil {
				return "", nil, errors.Join(err, lock.Close())
			}
			return "", lock, nil
		}
		if lock != nil {
			_ = lock.Close() // somebody else's server, which has no such lock
		}
		if ok && state.ready {
			owner, err := ping(ctx, state.socketDir)
			switch {
			case err == nil && here && orphaned(state.pid, owner):
				// The kernel has sent the server the signal to stop, or will.
				_ = syscall.Kill(state.pid, syscall.SIGINT)
			case err == nil:
				return socketURL(state.socketDir, databaseName), nil, ensureDatabase(ctx, state.socketDir)
			case !passing(err):
				return "", nil, fmt.Errorf("process %d serves %s but refuses us: %w", state.pid, h.data(), err)
			}
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return "", nil, fmt.Errorf("process %d serves %s but does not answer: %w", state.pid, h.data(), err)
		}
	}
}

// lockServer takes the lock of a server, or returns nil if a server holds it. All
// processes of a server inherit the open file, so they hold the lock together as long
// as one of them lives. Unlike the pid in the server's own lock file, the lock is
// never wrong: not after a reboot, and not in another container.
func (h home) lockServer() (*os.File, error) {
	path := h.serverLockPath()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = h.owner.give(path)
	}
	if err != nil {
		return nil, fmt.Errorf("lock the server: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, syscall.EWOULDBLOCK):
		return nil, f.Close()
	default:
		return nil, errors.Join(fmt.Errorf("lock the server: %w", err), f.Close())
	}
}

func (h home) serverLockPath() string { return filepath.Join(h.dir, "server.lock") }

// orphansOf returns the remaining processes of a server that has crashed. Its own lock
// file still exists then.
func (h home) orphansOf(pid int) []*os.Process {
	if !h.lastServerWas(pid) {
		return nil
	}
	orphans := lockHolders(h)
	if !h.lastServerWas(pid) {
		return nil // they may be those of the next server
	}
	return orphans
}

// lastServerWas returns false as soon as somebody starts the next server, which begins
// by removing the pid file of the last one.
func (h home) lastServerWas(pid int) bool {
	state, ok := readPidFile(h)
	return ok && state.pid == pid
}

// removeStalePidFile removes the file as the server would. It also does so when the
// pid belongs to another process of the same user, which the server would take for a
// running server.
func (h home) removeStalePidFile() error {
	if err := os.Remove(h.pidPath()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove a stale lock file: %w", err)
	}
	return nil
}

// passing reports whether a later connection may succeed: the server starts or stops
// (class 57), is full (class 53), or did not answer at all.
func passing(err error) bool {
	var pgErr *pgconn.PgError
	return !errors.As(err, &pgErr) || strings.HasPrefix(pgErr.Code, "57") || strings.HasPrefix(pgErr.Code, "53")
}

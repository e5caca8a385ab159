package child

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/cgroup"
)

const (
	// homePrefix names the directories of hosts in the socket directory.
	homePrefix = "hf-"
	// bareHomePrefix names them before they are locked.
	bareHomePrefix = ".hf-"
	lockName       = "lock"
	// cgroupName is the file that says where the host's cgroups are.
	cgroupName = "cgroup"
	// bareFor is how old a directory that was never locked must be to be
	// taken for a leftover.
	bareFor = time.Hour
	// socketDirVariable is set by go-plugin for every process, to a directory
	// of its launch alone. It marks the process and all its descendants that
	// keep their environment.
	socketDirVariable = "PLUGIN_UNIX_SOCKET_DIR"
)

// Home is a host's own directory, with a lock that lives as long as the host's
// process: nothing else proves as well, across containers and reused process
// ids, that the owner is gone.
type Home struct {
	Path string
	lock *os.File
}

// MakeHome makes the directory under a name that sweepers do not look at, and
// gives it its final one when the lock is held, so that none sees it unlocked.
func MakeHome(socketDir string) (*Home, error) {
	if err := os.MkdirAll(socketDir, 0o700); err != nil {
		return nil, err
	}
	if err := checkOwner(socketDir); err != nil {
		return nil, err
	}
	bare, err := os.MkdirTemp(socketDir, bareHomePrefix)
	if err != nil {
		return nil, err
	}
	lock, err := lockFile(filepath.Join(bare, lockName))
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	path := filepath.Join(socketDir, homePrefix+strings.TrimPrefix(filepath.Base(bare), bareHomePrefix))
	if err := os.Rename(bare, path); err != nil {
		_ = lock.Close()
		return nil, err
	}
	return &Home{Path: path, lock: lock}, nil
}

// checkOwner refuses a directory in which another user could put something in the
// place of ours, such as one that was made in /tmp under our name beforehand.
func checkOwner(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || !info.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	case int(stat.Uid) != os.Geteuid() && stat.Uid != 0:
		return fmt.Errorf("%s belongs to user %d", dir, stat.Uid)
	case info.Mode().Perm()&0o022 != 0 && info.Mode()&os.ModeSticky == 0:
		return fmt.Errorf("others may write to %s", dir)
	}
	return nil
}

// Name is the directory's own, which no other host has.
func (h *Home) Name() string { return filepath.Base(h.Path) }

// SetCgroups records where the host's cgroups are, for whoever sweeps the home.
func (h *Home) SetCgroups(tree *cgroup.Tree) error {
	return os.WriteFile(filepath.Join(h.Path, cgroupName), []byte(tree.Path), 0o600)
}

// Open lets other users go through the directory, and the one it lies in, to the
// socket directories that belong to them. They see nothing else of it.
func (h *Home) Open() error {
	return errors.Join(letThrough(filepath.Dir(h.Path)), letThrough(h.Path))
}

func letThrough(dir string) error {
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm()&0o111 == 0o111 {
		return err
	}
	return os.Chmod(dir, info.Mode()|0o111)
}

// Remove removes the directory and all in it, and gives up the lock.
func (h *Home) Remove() error {
	err := os.RemoveAll(h.Path)
	_ = h.lock.Close()
	return err
}

// Unlock leaves the directory to whoever sweeps.
func (h *Home) Unlock() { _ = h.lock.Close() }

// Sweep removes the directories of hosts that are gone, and kills the processes
// that those hosts left behind. It returns how many directories went. What it
// cannot remove, it leaves.
func Sweep(socketDir string) int {
	entries, err := os.ReadDir(socketDir)
	if err != nil {
		return 0
	}
	swept := 0
	for _, entry := range entries {
		path := filepath.Join(socketDir, entry.Name())
		switch {
		case !entry.IsDir():
		case strings.HasPrefix(entry.Name(), homePrefix):
			if sweepHome(path) {
				swept++
			}
		case strings.HasPrefix(entry.Name(), bareHomePrefix):
			if info, err := entry.Info(); err == nil && time.Since(info.ModTime()) > bareFor {
				_ = os.RemoveAll(path)
			}
		}
	}
	return swept
}

func sweepHome(path string) bool {
	name := filepath.Join(path, lockName)
	if _, err := os.Lstat(name); err != nil {
		return false
	}
	lock, err := lockFile(name)
	if err != nil {
		return false
	}
	defer func() { _ = lock.Close() }()
	// What others have put there is none of our business.
	if tree, err := os.ReadFile(filepath.Join(path, cgroupName)); err == nil && filepath.Base(string(tree)) == filepath.Base(path) {
		if cgroup.Remove(string(tree)) != nil {
			// Only the home knows of it.
			return false
		}
	}
	killMarked("\x00" + socketDirVariable + "=" + path + "/")
	return os.RemoveAll(path) == nil
}

package osprocess

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/cgroup"
)

const (
	// homePrefix begins the name of a host's directory in the socket directory.
	homePrefix = "hf-"
	// unlockedPrefix begins the name until the directory is locked.
	unlockedPrefix = ".hf-"
	lockName       = "lock"
	// cgroupName is the file that contains the path of the host's cgroups.
	cgroupName = "cgroup"
	// A directory that was never locked counts as left behind when it is older than
	// unlockedFor.
	unlockedFor = time.Hour
	// socketDirVariable is set by go-plugin for every process, to a directory of that
	// launch. It marks the process, and all descendants that keep their environment.
	socketDirVariable = "PLUGIN_UNIX_SOCKET_DIR"
)

// Home is a host's own directory, with a lock that lives as long as the host's process.
// Only a lock proves, across containers and reused process ids, that its owner is gone.
type Home struct {
	Path string
	lock *os.File
}

// MakeHome makes the directory under a name that Sweep ignores, and renames it when the
// lock is held, so that Sweep never sees it unlocked.
func MakeHome(socketDir string) (*Home, error) {
	if err := os.MkdirAll(socketDir, 0o700); err != nil {
		return nil, err
	}
	if err := checkOwner(socketDir); err != nil {
		return nil, err
	}
	unlocked, err := os.MkdirTemp(socketDir, unlockedPrefix)
	if err != nil {
		return nil, err
	}
	lock, err := lockFile(filepath.Join(unlocked, lockName))
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	path := filepath.Join(socketDir, homePrefix+strings.TrimPrefix(filepath.Base(unlocked), unlockedPrefix))
	if err := os.Rename(unlocked, path); err != nil {
		_ = lock.Close()
		return nil, err
	}
	return &Home{Path: path, lock: lock}, nil
}

// checkOwner refuses a directory whose content another user could replace, such as one
// that another user has made in /tmp.
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

// Name is unique among hosts.
func (h *Home) Name() string { return filepath.Base(h.Path) }

// SetCgroups records where the host's cgroups are, so that a sweep can remove them.
func (h *Home) SetCgroups(tree *cgroup.Tree) error {
	return os.WriteFile(filepath.Join(h.Path, cgroupName), []byte(tree.Path), 0o600)
}

// Open permits other users to enter the directory and the one above it, so that they
// can reach their socket directories. They cannot list either.
func (h *Home) Open() error {
	return errors.Join(allowEntry(filepath.Dir(h.Path)), allowEntry(h.Path))
}

func allowEntry(dir string) error {
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm()&0o111 == 0o111 {
		return err
	}
	return os.Chmod(dir, info.Mode()|0o111)
}

// Remove removes the directory with its content, and releases the lock.
func (h *Home) Remove() error {
	err := removeHome(h.Path)
	_ = h.lock.Close()
	return err
}

// removeHome first gives the directory a name that needs no lock: if this process is
// killed after the lock is removed, a sweep removes the rest.
func removeHome(path string) error {
	unlocked := filepath.Join(filepath.Dir(path), unlockedPrefix+strings.TrimPrefix(filepath.Base(path), homePrefix))
	if err := os.Rename(path, unlocked); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(unlocked)
}

// Unlock leaves the directory for the next start to sweep.
func (h *Home) Unlock() { _ = h.lock.Close() }

// Sweep removes the directories of hosts that are gone, and kills the processes that
// those hosts left behind. It returns how many directories it has removed.
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
		case strings.HasPrefix(entry.Name(), unlockedPrefix):
			if info, err := entry.Info(); err == nil && time.Since(info.ModTime()) > unlockedFor {
				_ = os.RemoveAll(path)
			}
		}
	}
	return swept
}

func sweepHome(path string) bool {
	name := filepath.Join(path, lockName)
	if _, err := os.Lstat(name); err != nil || !strings.HasPrefix(filepath.Base(path), homePrefix) {
		return false
	}
	lock, err := lockFile(name)
	if err != nil {
		return false
	}
	defer func() { _ = lock.Close() }()
	// Ignore a path that we did not write.
	if tree, err := os.ReadFile(filepath.Join(path, cgroupName)); err == nil && filepath.Base(string(tree)) == filepath.Base(path) {
		if cgroup.Remove(string(tree)) != nil {
			// Only the home records the path, so keep it.
			return false
		}
	}
	continueKeepers(path)
	killMarked("\x00" + socketDirVariable + "=" + path + "/")
	return removeHome(path) == nil
}

// lockFile opens or makes the file, and locks it until it is closed or this process ends.
// It returns an error if another process holds the lock.
func lockFile(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

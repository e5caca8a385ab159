package embedded

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	userName     = "holdfast"
	databaseName = "holdfast"
	socketPort   = "5432"
	socketName   = ".s.PGSQL." + socketPort
)

// refuge is the directory for homes that PostgreSQL's user could not reach otherwise.
var refuge = "/var/lib/holdfast"

// home is the directory that contains a cluster, and the user it belongs to.
type home struct {
	wanted string // as configured, made absolute
	dir    string // the same without links
	owner  account
}

func locate(dataDir string) (home, error) {
	wanted, err := filepath.Abs(dataDir)
	if err != nil {
		return home{}, fmt.Errorf("data directory: %w", err)
	}
	dir, err := filepath.EvalSymlinks(wanted)
	if errors.Is(err, fs.ErrNotExist) {
		dir, err = wanted, nil
		if target, linkErr := os.Readlink(wanted); linkErr == nil {
			dir = target // the data was removed, the link stayed
		}
	}
	if err != nil {
		return home{}, fmt.Errorf("data directory: %w", err)
	}
	owner, err := accountFor(dir)
	if err != nil {
		return home{}, err
	}
	return home{wanted: wanted, dir: dir, owner: owner}, nil
}

// data is PostgreSQL's data directory.
func (h home) data() string { return filepath.Join(h.dir, "data") }

// container is the counterpart of data if Docker runs the server.
func (h home) container() string { return filepath.Join(h.dir, "container") }

func (h home) hasCluster() bool { return clusterVersion(h.data()) != "" }

// prepare makes the directory and makes sure that the server's user can work in it.
// The home that it returns may be in another place.
func (h home) prepare(ctx context.Context, installed installation) (home, error) {
	if err := h.make(); err != nil {
		return home{}, err
	}
	if clusterVersion(h.dir) != "" {
		return home{}, fmt.Errorf("%s is itself the data directory of a PostgreSQL: choose another one, or configure that server's URL", h.dir)
	}
	reachErr := h.reach(ctx, installed)
	if reachErr == nil {
		return h, nil
	}
	if !h.owner.other {
		return home{}, reachErr
	}
	moved, err := h.move()
	if err == nil {
		err = moved.reach(ctx, installed)
	}
	if err != nil {
		return home{}, fmt.Errorf("PostgreSQL refuses to run as root and its user %s cannot reach %s; choose a data directory outside of private ones such as /root: %w",
			h.owner.name, h.dir, err)
	}
	return moved, nil
}

func (h home) make() error {
	if err := os.MkdirAll(filepath.Dir(h.dir), 0o755); err != nil {
		return fmt.Errorf("make the data directory: %w", err)
	}
	err := os.Mkdir(h.dir, 0o700)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make the data directory: %w", err)
	}
	uid, _, err := ownerOf(h.dir)
	if err != nil {
		return err
	}
	switch {
	case uid == h.owner.uid:
		return nil
	case h.owner.other:
		return h.owner.give(h.dir)
	default:
		return fmt.Errorf("the data directory %s belongs to user %s, not to %s: run as that user, or choose another one",
			h.dir, nameOf(uid), h.owner.name)
	}
}

// reach checks that the server's user can enter the home, by running a harmless command
// there.
func (h home) reach(ctx context.Context, installed installation) error {
	cmd := childOf(ctx, h, filepath.Join(installed.dir, "postgres"), []string{"--version"}, syscall.SIGKILL)
	if _, err := outputOf(ctx, cmd); err != nil {
		return fmt.Errorf("enter %s as user %s: %w", h.dir, h.owner.name, err)
	}
	return nil
}

// move moves an empty home to the refuge and leaves a link to it.
func (h home) move() (home, error) {
	place := filepath.Join(refuge, filepath.Base(h.dir)+"-"+shortHash(h.dir))
	// Removing fails if the directory is not empty, so nothing is lost.
	if err := os.Remove(h.dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return home{}, fmt.Errorf("move the data directory to %s: %w", place, err)
	}
	moved := home{wanted: h.wanted, dir: place, owner: h.owner}
	if err := moved.make(); err != nil {
		return home{}, err
	}
	if err := os.Symlink(place, h.dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return home{}, fmt.Errorf("link the data directory to %s: %w", place, err)
	}
	return moved, nil
}

// lock stops other processes from starting a server here until unlock is called.
func (h home) lock(ctx context.Context) (unlock func(), err error) {
	dir, err := os.Open(h.dir)
	if err != nil {
		return nil, fmt.Errorf("lock the data directory: %w", err)
	}
	for {
		err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = dir.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock the data directory: %w", err), dir.Close())
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return nil, errors.Join(fmt.Errorf("another process is starting PostgreSQL in %s: %w", h.dir, err), dir.Close())
		}
	}
}

// longestSocketDir leaves room for the socket's name: macOS allows 103 bytes for both,
// Linux 107.
const longestSocketDir = 103 - len("/"+socketName)

// socketDir returns the directory for the socket, and creates it if needed. Only the
// server's user and root can enter it.
func (h home) socketDir() (string, error) {
	// The setting is a list, in which these characters have a special meaning.
	if len(h.dir) <= longestSocketDir && !strings.ContainsAny(h.dir, `,"`) {
		return h.dir, nil
	}
	dir := fmt.Sprintf("/tmp/holdfast-%d-%s", h.owner.uid, shortHash(h.dir))
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		err = h.owner.give(dir)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("make the socket directory: %w", err)
	}
	// Anybody may have created something there before.
	info, err := os.Lstat(dir)
	if err != nil {
		return "", fmt.Errorf("look at the socket directory: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || info.Mode().Perm() != 0o700 || int(stat.Uid) != h.owner.uid {
		return "", fmt.Errorf("%s is not a private directory of user %s: remove it, or choose a shorter data directory", dir, h.owner.name)
	}
	return dir, nil
}

func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:6])
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

package osprocess

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// Identity is the user and the one group that a process runs as.
type Identity struct {
	UID, GID uint32
}

// LookUp finds the identity of a user and a group, by name or number. An empty group
// means the user's own. It returns nil if this process already has that identity, and
// an error if it may not change to it.
func LookUp(name, group string) (*Identity, error) {
	if name == "" {
		if group != "" {
			return nil, fmt.Errorf("group %s: a group needs a user", group)
		}
		return nil, nil
	}
	found, err := userOf(name)
	if err != nil {
		return nil, err
	}
	if group != "" {
		found.Gid, err = groupOf(group)
	} else if found.Gid == "" {
		err = fmt.Errorf("user %s has no entry on this machine, so set a group", name)
	}
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(found.Uid, 10, 31)
	if err != nil {
		return nil, fmt.Errorf("user %s: %s is not a user id", name, found.Uid)
	}
	gid, err := strconv.ParseUint(found.Gid, 10, 31)
	if err != nil {
		return nil, fmt.Errorf("group %s: %s is not a group id", group, found.Gid)
	}
	identity := &Identity{UID: uint32(uid), GID: uint32(gid)}
	switch {
	case int(identity.UID) == os.Geteuid() && int(identity.GID) == os.Getegid():
		return nil, nil
	case os.Geteuid() != 0:
		return nil, fmt.Errorf("user %s: only root may run a plugin as another user, and this is user %d", name, os.Geteuid())
	}
	return identity, nil
}

func userOf(name string) (*user.User, error) {
	if _, err := strconv.ParseUint(name, 10, 31); err != nil {
		found, err := user.Lookup(name)
		if err != nil {
			return nil, fmt.Errorf("user %s is not known on this machine", name)
		}
		return found, nil
	}
	if found, err := user.LookupId(name); err == nil {
		return found, nil
	}
	return &user.User{Uid: name}, nil
}

func groupOf(name string) (string, error) {
	if _, err := strconv.ParseUint(name, 10, 31); err == nil {
		return name, nil
	}
	found, err := user.LookupGroup(name)
	if err != nil {
		return "", fmt.Errorf("group %s is not known on this machine", name)
	}
	return found.Gid, nil
}

func (i *Identity) credential() *syscall.Credential {
	if i == nil {
		return nil
	}
	return &syscall.Credential{Uid: i.UID, Gid: i.GID}
}

// CanReach returns an error unless the user may enter every directory above the path,
// and has these permissions for the path: 4 is read, 1 is execute. It ignores access
// control lists.
func (i *Identity) CanReach(path string, bits fs.FileMode) error {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if err := i.may(dir, 1); err != nil {
			return err
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return i.may(path, bits)
}

func (i *Identity) may(path string, bits fs.FileMode) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return i.mayUse(path, info, bits)
}

func (i *Identity) mayUse(path string, info fs.FileInfo, bits fs.FileMode) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || i.UID == 0 {
		return nil
	}
	has := info.Mode().Perm()
	switch {
	case stat.Uid == i.UID:
		has >>= 6
	case stat.Gid == i.GID:
		has >>= 3
	}
	if has&bits != bits {
		return fmt.Errorf("user %d may not %s %s (%s)", i.UID, permission(info.IsDir(), bits), path, info.Mode())
	}
	return nil
}

func permission(dir bool, bits fs.FileMode) string {
	switch {
	case dir:
		return "enter"
	case bits&4 != 0:
		return "read and execute"
	default:
		return "execute"
	}
}

// admitIdentity gives the socket directory to the user that the process runs as, and
// checks that this user may execute the binary: by its path, or as the open file.
func (c *Process) admitIdentity(open *os.File) error {
	who := c.spec.Identity
	if who == nil {
		return nil
	}
	if err := os.Chown(c.socketDir, int(who.UID), int(who.GID)); err != nil {
		return fmt.Errorf("socket directory: %w", err)
	}
	if err := who.CanReach(c.socketDir, 7); err != nil {
		return fmt.Errorf("it cannot make its socket: %w", err)
	}
	needs := fs.FileMode(1)
	if c.spec.Binary.Script {
		needs = 5
	}
	if open == nil {
		return who.CanReach(c.spec.Binary.Path, needs)
	}
	// Executing an open file needs no access to the directories above it.
	info, err := open.Stat()
	if err != nil {
		return err
	}
	return who.mayUse(c.spec.Binary.Path, info, needs)
}

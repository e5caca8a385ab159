package child

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// Identity is the user and group that a process runs as. It has no other groups.
type Identity struct {
	UID, GID uint32
}

// LookUp finds the identity of a user and a group, given by name or number. The
// group may be empty for the user's own. It returns nil when that is who we are,
// and an error when we may not become that.
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
		err = fmt.Errorf("user %s has no entry on this machine, and so no group: set one", name)
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
		return nil, fmt.Errorf("user %s: only root may run a handler as somebody else, and this is user %d", name, os.Geteuid())
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

// CanReach checks that the user may go through every directory above the path,
// and do with it what the bits say: 4 is read, 1 is execute. Access lists are not
// looked at.
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
		return fmt.Errorf("user %d may not %s %s (%s)", i.UID, wish(info.IsDir(), bits), path, info.Mode())
	}
	return nil
}

func wish(dir bool, bits fs.FileMode) string {
	switch {
	case dir:
		return "go through"
	case bits&4 != 0:
		return "read and execute"
	default:
		return "execute"
	}
}

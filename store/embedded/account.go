package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// account is the user that PostgreSQL runs as.
type account struct {
	name     string
	uid, gid int
	// other says that the caller is root and runs its children as this user: PostgreSQL
	// refuses to run as root.
	other bool
}

// accountFor picks the user for the server of dir: the caller, unless that is root.
// For root, it is the owner of the existing directory, else postgres, else nobody.
func accountFor(dir string) (account, error) {
	if uid := os.Geteuid(); uid != 0 {
		return account{name: nameOf(uid), uid: uid, gid: os.Getegid()}, nil
	}
	uid, gid, err := ownerOf(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return account{}, err
	}
	if err == nil && uid != 0 {
		return account{name: nameOf(uid), uid: uid, gid: gid, other: true}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.Atoi(u.Uid)
		gid, gidErr := strconv.Atoi(u.Gid)
		if err := errors.Join(uidErr, gidErr); err != nil {
			return account{}, fmt.Errorf("look up user %s: %w", name, err)
		}
		return account{name: name, uid: uid, gid: gid, other: true}, nil
	}
	return account{}, errors.New("PostgreSQL refuses to run as root, and there is no user postgres or nobody to run it as")
}

// give makes the account the owner of a path that the caller has created.
func (a account) give(path string) error {
	if !a.other {
		return nil
	}
	if err := os.Chown(path, a.uid, a.gid); err != nil {
		return fmt.Errorf("give the data directory to user %s: %w", a.name, err)
	}
	return nil
}

func nameOf(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return strconv.Itoa(uid)
}

func ownerOf(path string) (uid, gid int, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, 0, fmt.Errorf("look at the data directory: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, fmt.Errorf("look at the data directory: no owner known for %s", path)
	}
	return int(stat.Uid), int(stat.Gid), nil
}

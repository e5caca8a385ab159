package child

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// makeGroup gives the process its own cgroup, where it may have one, under the
// name of its socket directory.
func (c *Process) makeGroup() error {
	if c.spec.Cgroups == nil {
		return nil
	}
	group, err := c.spec.Cgroups.Make(filepath.Base(c.socketDir), c.spec.Limits)
	if err != nil {
		return fmt.Errorf("cgroup: %w", err)
	}
	c.group = group
	return nil
}

func (c *Process) removeGroup() {
	if c.group == nil {
		return
	}
	if err := c.group.Remove(); err != nil {
		c.out.Log.Warn("the cgroup of a plugin process is left behind", "error", err)
	}
}

// admitIdentity gives the socket directory to the user that the process runs as,
// and checks that this user may execute the binary: by its path, or the open file.
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

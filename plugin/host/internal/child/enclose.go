package child

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/cgroup"
)

// makeGroup gives the process its own cgroup, where it may have one, under the
// name of its socket directory.
func (c *Process) makeGroup() error {
	if c.spec.Cgroups == nil {
		return nil
	}
	group, err := c.spec.Cgroups.Make(filepath.Base(c.socketDir), cgroup.Limits{
		MemoryBytes: c.spec.Limits.MemoryBytes, CPUs: c.spec.Limits.CPUs, Processes: c.spec.Limits.Processes,
	})
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
// and checks that this one can execute the binary.
func (c *Process) admitIdentity() error {
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
	wish := fs.FileMode(1)
	if isScript(c.spec.Path) {
		wish = 5
	}
	if c.spec.Checksum != "" {
		// What is open is executed without a walk through directories.
		return who.may(c.spec.Path, wish)
	}
	return who.CanReach(c.spec.Path, wish)
}

// isScript knows a file that is read by its interpreter.
func isScript(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	var begin [2]byte
	_, err = io.ReadFull(file, begin[:])
	return err == nil && string(begin[:]) == "#!"
}

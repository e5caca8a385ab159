//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/holdfast-jobs/holdfast/test/rig"
)

const (
	// roomInMemory is how much both servers may write.
	roomInMemory = 4 << 30
	scratchName  = "holdfast-chaos-"
	// ownerName is the file that names the process of the run.
	ownerName = "owner"
)

// makeScratch makes a directory for what the record does not need, in memory if there is
// room. It removes those of runs that were killed.
func (r *run) makeScratch() (err error) {
	base := os.TempDir()
	var room syscall.Statfs_t
	const memory = "/dev/shm"
	if syscall.Statfs(memory, &room) == nil && room.Bavail*uint64(room.Bsize) > roomInMemory { //nolint:gosec // positive
		base = memory
	}
	for _, left := range abandoned(base) {
		r.log.Warn("removing what a killed run has left", "path", left)
		removeScratch(left)
	}
	if r.scratch, err = os.MkdirTemp(base, scratchName); err != nil {
		return err
	}
	self, err := rig.ProcessOf(os.Getpid())
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(r.scratch, ownerName), []byte(owner(self)), 0o600),
		os.Chmod(r.scratch, 0o755), // PostgreSQL runs as another user if this runs as root.
		os.Mkdir(filepath.Join(r.scratch, "tmp"), 0o755),
	)
}

func owner(p rig.Process) string { return fmt.Sprintf("%d %d", p.PID, p.Started()) }

// abandoned lists directories whose runs are over.
func abandoned(base string) (left []string) {
	all, _ := filepath.Glob(filepath.Join(base, scratchName+"*")) // only a bad pattern is an error
	for _, dir := range all {
		named, err := os.ReadFile(filepath.Join(dir, ownerName))
		var pid int
		if err != nil {
			continue // It is being made.
		}
		if _, err := fmt.Sscan(string(named), &pid); err != nil {
			continue
		}
		if p, err := rig.ProcessOf(pid); err != nil || owner(p) != string(named) || !p.Alive() {
			left = append(left, dir)
		}
	}
	return left
}

// removeScratch removes such a directory, and the file systems in it.
func removeScratch(dir string) {
	mounted, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, path := range mounted {
		_ = syscall.Unmount(path, syscall.MNT_DETACH) // Most are no file systems.
	}
	_ = os.RemoveAll(dir)
}

//go:build unix && !linux

package embedded

import (
	"errors"
	"os"
	"syscall"
)

// runsIn can only say whether the process exists.
func runsIn(_ string, pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

// childrenOf knows of none: they see by themselves that their server is gone.
func childrenOf(int) []int { return nil }

// lockHolders knows of none, as childrenOf.
func lockHolders(home) []*os.Process { return nil }

// orphaned is false: without a death signal an orphan runs on and is shared.
func orphaned(int, string) bool { return false }

//go:build unix && !linux

package embedded

import (
	"errors"
	"os"
	"syscall"
)

// childAttributes gives the child its user and a process group of its own.
// There is no death signal here: after a crash of its owner the server keeps running,
// and the next Start shares it.
func childAttributes(owner account, _ syscall.Signal) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setpgid: true}
	if owner.other {
		attributes.Credential = &syscall.Credential{Uid: uint32(owner.uid), Gid: uint32(owner.gid)}
	}
	return attributes
}

// runsIn can only say whether the process exists.
func runsIn(_ string, pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

// childrenOf finds none: children notice by themselves that their server is gone.
func childrenOf(int) []int { return nil }

// lockHolders finds none, like childrenOf.
func lockHolders(home) []*os.Process { return nil }

// orphaned is false: without a death signal an orphan keeps running and is shared.
func orphaned(int, string) bool { return false }

// thisMachine knows nothing about the machine.
func thisMachine(string) machine { return machine{} }

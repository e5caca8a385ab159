//go:build unix && !linux

package embedded

import "syscall"

// childAttributes gives the child its user and a process group of its own.
// There is no death signal here: after a crash of its owner the server runs
// on, and the next Start shares it.
func childAttributes(owner account, _ syscall.Signal) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setpgid: true}
	if owner.other {
		attributes.Credential = &syscall.Credential{Uid: uint32(owner.uid), Gid: uint32(owner.gid)}
	}
	return attributes
}

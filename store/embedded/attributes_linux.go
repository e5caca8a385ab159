package embedded

import "syscall"

// childAttributes gives the child its user, a process group of its own, so
// that Ctrl-C on the terminal does not reach it, and the signal it gets when
// the thread that starts it ends.
func childAttributes(owner account, onDeath syscall.Signal) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: onDeath}
	if owner.other {
		attributes.Credential = &syscall.Credential{Uid: uint32(owner.uid), Gid: uint32(owner.gid)}
	}
	return attributes
}

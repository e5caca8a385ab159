package pgbouncer

import "syscall"

// attributes are those of a process that dies when the thread ends that has started it; threads of Go
// last as long as the process.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

//go:build unix && !linux

package pgbouncer

import "syscall"

// attributes are those of a process that stays when the one that has started it is gone.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

//go:build unix && !linux

package plugin

import "golang.org/x/sys/unix"

// duplicate makes the file descriptor to the same as from.
func duplicate(from, to, flags int) error {
	if err := unix.Dup2(from, to); err != nil {
		return err
	}
	if flags&unix.O_CLOEXEC != 0 {
		unix.CloseOnExec(to)
	}
	return nil
}

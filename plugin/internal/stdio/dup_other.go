//go:build unix && !linux

package stdio

import "golang.org/x/sys/unix"

// duplicate makes the file descriptor to the same as from.
func duplicate(from, to int) error { return unix.Dup2(from, to) }

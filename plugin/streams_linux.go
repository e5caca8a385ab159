package plugin

import "golang.org/x/sys/unix"

// duplicate makes the file descriptor to the same as from.
func duplicate(from, to, flags int) error { return unix.Dup3(from, to, flags) }

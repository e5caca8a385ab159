package stdio

import "golang.org/x/sys/unix"

// duplicate makes the file descriptor to the same as from. Not every Linux has
// dup2.
func duplicate(from, to int) error { return unix.Dup3(from, to, 0) }

// Package stdio keeps a plugin process's standard output for its handshake.
package stdio

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Divert makes standard output the same as standard error, for this process and
// for programs it starts, and returns the standard output of before. Print the
// handshake there and close it: nothing else gets into that pipe, or is blocked
// by it.
func Divert() (handshake *os.File, err error) {
	aside, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("keep standard output: %w", err)
	}
	if err := unix.Dup2(2, 1); err != nil {
		return nil, fmt.Errorf("redirect standard output: %w", err)
	}
	// Programs that a handler starts share it, and expect that it blocks.
	if err := unix.SetNonblock(2, false); err != nil {
		return nil, fmt.Errorf("standard error: %w", err)
	}
	return os.NewFile(uintptr(aside), "handshake"), nil
}

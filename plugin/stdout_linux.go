package plugin

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// keepStdoutForHandshake moves standard output aside for the one line that
// go-plugin prints, and makes file descriptor 1 the same as standard error, so
// that nothing else can get into that pipe, or be blocked by it.
func keepStdoutForHandshake() error {
	handshake, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return fmt.Errorf("keep standard output: %w", err)
	}
	if err := unix.Dup3(2, 1, 0); err != nil {
		return fmt.Errorf("redirect standard output: %w", err)
	}
	os.Stdout = os.NewFile(uintptr(handshake), "handshake")
	return nil
}

package child

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// Explain adds to the error of a start what the kernel leaves out: it says of a
// file that is there that there is none, when it means another.
func Explain(err error) error {
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("%w: it is no program for this machine, nor a script with #! on its first line", err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: it may be missing itself, or what it needs, such as the interpreter that a script names on its first line", err)
	}
	return err
}

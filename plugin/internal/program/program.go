// Package program says what is wrong with a file that is to be launched.
package program

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Check says why nothing can be launched from a path; nil when it holds a file that
// is executable.
func Check(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a file", path)
	case info.Mode().Perm()&0o111 == 0:
		return fmt.Errorf("%s is not executable", path)
	}
	return nil
}

// ExplainStart adds to the error of exec.Cmd.Start what the kernel leaves out: it says of a
// file that is there that there is none, when it means another.
func ExplainStart(err error) error {
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("%w: it is no program for this machine, nor a script with #! on its first line", err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: it may be missing itself, or what it needs, such as the interpreter that a script names on its first line", err)
	}
	return err
}

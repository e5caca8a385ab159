// Package executable says why a plugin's file cannot be launched.
package executable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Check returns an error unless the path is an executable file.
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

// ExplainStart explains an error of exec.Cmd.Start: the kernel says "no such file" of an
// existing script if the interpreter is missing.
func ExplainStart(err error) error {
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("%w: it is no program for this machine, nor a script with #! on its first line", err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: it may be missing itself, or what it needs, such as the interpreter that a script names on its first line", err)
	}
	return err
}

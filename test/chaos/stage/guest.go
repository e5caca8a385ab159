//go:build linux

package stage

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// GuestCommand is the first argument with which this program is the init of a guest.
const GuestCommand = "be-guest"

// BeGuest is the init of a host of its own: the first process of a PID namespace. It
// starts the program of the arguments, reaps orphans, and returns an exit code when no
// process is left: what a killed program has left behind keeps it alive.
func BeGuest(args []string) int {
	// The processes of this host see each other, and no others.
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		fmt.Fprintln(os.Stderr, "a mount namespace:", err)
		return 1
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		fmt.Fprintln(os.Stderr, "mount /proc:", err)
		return 1
	}
	cmd := exec.Command(args[0], args[1:]...) //nolint:gosec,noctx // it ends with the namespace
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := 1
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil: // no children are left
			return code
		case pid == cmd.Process.Pid && status.Exited():
			code = status.ExitStatus()
		case pid == cmd.Process.Pid:
			code = 128 + int(status.Signal())
		}
	}
}

//go:build linux

package stage

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/holdfast-jobs/holdfast/test/rig"
)

// Send sends a signal to exactly this process, never to a later one with its id.
func Send(p rig.Process, signal syscall.Signal) error {
	handle, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		return fmt.Errorf("process %d: %w", p.PID, err)
	}
	defer unix.Close(handle) //nolint:errcheck // nothing was written
	if !p.Alive() {
		return fmt.Errorf("process %d has ended", p.PID)
	}
	return unix.PidfdSendSignal(handle, signal, nil, 0)
}

//go:build linux

// Package stage is where a chaos run takes place: hosts with orchestrators and their
// plugins. A host of its own is a PID namespace, so that the orchestrators there cannot
// see those of other hosts, just as on another machine. All processes end with
// the run.
package stage

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Host is an imagined machine.
type Host struct {
	Name string
	// Isolated says that the host has a PID namespace.
	Isolated bool
}

// MayIsolate makes a PID namespace, and returns why this process cannot.
func MayIsolate(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, GuestCommand, "/bin/true")
	cmd.SysProcAttr = isolation()
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("a PID namespace with a /proc of its own: %w %s", err, bytes.TrimSpace(said))
	}
	return nil
}

// isolation makes a process the first of a PID namespace. An ordinary user needs a user
// namespace for that, in which the user is itself.
func isolation() *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setpgid: true, Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		attributes.Cloneflags |= syscall.CLONE_NEWUSER
		attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
		// Without root in the namespace, it could not mount /proc there.
		attributes.AmbientCaps = []uintptr{capSysAdmin}
	}
	return attributes
}

const capSysAdmin = 21

package cgroup

import (
	"errors"
	"fmt"
	"os/exec"

	"golang.org/x/sys/unix"
)

// Start starts the command as a member of the group from the beginning. It returns the
// command that was started, which may be a copy.
func (g *Group) Start(cmd *exec.Cmd) (*exec.Cmd, error) {
	dir, err := g.Open()
	if err != nil {
		return cmd, err
	}
	defer func() { _ = dir.Close() }()
	again := *cmd
	inside := *cmd.SysProcAttr
	inside.UseCgroupFD, inside.CgroupFD = true, int(dir.Fd())
	cmd.SysProcAttr = &inside
	err = cmd.Start()
	if err == nil || !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EPERM) {
		return cmd, err
	}
	// Some sandboxes forbid clone3, which UseCgroupFD needs.
	if err := again.Start(); err != nil {
		return &again, err
	}
	if err := g.Add(again.Process.Pid); err != nil {
		_ = unix.Kill(-again.Process.Pid, unix.SIGKILL)
		_ = again.Wait()
		return &again, fmt.Errorf("move into its cgroup: %w", err)
	}
	return &again, nil
}

package child

import "syscall"

// End ends the process and its group. It does not wait, and may be called at
// any time: before the start it forbids it, after the end it does nothing.
func (c *Process) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.doomed = true
	if c.started && !c.reaped {
		c.signalGroupLocked()
	}
}

// condemn kills the process because of what it does; it is no end of ours.
func (c *Process) condemn(death Death) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.started || c.reaped || c.doomed {
		return
	}
	if c.sentence == nil {
		c.sentence = &death
	}
	if c.group != nil {
		c.group.Kill()
	}
	c.signalGroupLocked()
}

func (c *Process) signalGroupLocked() { _ = syscall.Kill(-c.pid, syscall.SIGKILL) }

// killRest kills what the process has forked and what is not in its group, where no
// keeper has done so.
func (c *Process) killRest() {
	if c.group != nil {
		c.group.Kill()
	}
	killMarked("\x00" + socketDirVariable + "=" + c.socketDir + "\x00")
}

// judge says why the process has died.
func (c *Process) judge(death Death) Death {
	c.mu.Lock()
	defer c.mu.Unlock()
	cause := c.sentence
	if death.Signal != syscall.SIGKILL || death.Cause != "" {
		return death
	}
	if cause == nil && c.group != nil && c.group.OutOfMemory() {
		killed := outOfMemory(c.spec.Limits.MemoryBytes)
		cause = &killed
	}
	if cause != nil {
		death.Cause, death.Detail = cause.Cause, cause.Detail
	}
	return death
}

// Death is how the process ended; only after gone.
func (c *Process) Death() Death { return c.death }

// LeftByItself reports whether the process is gone for another reason than End.
func (c *Process) LeftByItself() bool {
	select {
	case <-c.gone:
	default:
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.doomed || c.death.Signal != syscall.SIGKILL || c.death.Cause != ""
}

package osprocess

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// Cause is why a process was killed, if that is known.
type Cause string

// The causes of a kill.
const (
	// OutOfMemory: the process and its descendants used more than the limit, or the
	// machine ran out of memory.
	OutOfMemory Cause = "out_of_memory"
	// TooManyProcesses: the process and its descendants were more than the limit.
	TooManyProcesses Cause = "too_many_processes"
	// Stalled: the orchestrator was stopped until the time given to KillAt.
	Stalled Cause = "orchestrator_stalled"
)

// Death is how a process ended.
type Death struct {
	// Code is the exit code; -1 for none, for example after a signal.
	Code int
	// Signal is what ended it; 0 for none.
	Signal syscall.Signal
	// Cause is why it was killed; empty if unknown.
	Cause Cause
	// Detail describes the cause, with figures.
	Detail string

	core  bool
	other error
}

func (d Death) Error() string {
	switch {
	case d.Cause != "":
		return "killed: " + d.Detail
	case d.Signal != 0 && d.core:
		return fmt.Sprintf("signal: %s (%s), core dumped", d.Signal, unix.SignalName(d.Signal))
	case d.Signal != 0:
		return fmt.Sprintf("signal: %s (%s)", d.Signal, unix.SignalName(d.Signal))
	case d.other != nil:
		return d.other.Error()
	default:
		return fmt.Sprintf("exit status %d", d.Code)
	}
}

func deathBy(status syscall.WaitStatus) Death {
	if !status.Signaled() {
		return Death{Code: status.ExitStatus()}
	}
	return Death{Code: -1, Signal: status.Signal(), core: status.CoreDump()}
}

const stalled = "the orchestrator did not run while the lease of an attempt in the process ran out"

func outOfMemory(limit uint64) Death {
	detail := "out of memory"
	if limit > 0 {
		detail += fmt.Sprintf(": the process and its children together took more than %s", inMiB(limit))
	}
	return Death{Cause: OutOfMemory, Detail: detail}
}

func tooManyProcesses(limit uint64) Death {
	return Death{Cause: TooManyProcesses, Detail: fmt.Sprintf("more than %d processes and threads", limit)}
}

func inMiB(bytes uint64) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%d bytes", bytes)
	}
	return fmt.Sprintf("%.4g MiB", float64(bytes)/(1<<20))
}

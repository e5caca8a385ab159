package conformance

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-jobs/holdfast/plugin/internal/proctree"
)

// findsOrphans says that leftBehind works.
const findsOrphans = true

// vanishWithin is how long a killed process may take to disappear.
const vanishWithin = 2 * time.Second

// adoptOrphans makes orphaned descendants children of this process, where they can
// be found, until undo is called.
func adoptOrphans() (undo func()) {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	return func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) }
}

// descendants are the running processes below this one: their start times by id.
func descendants() map[int]string {
	born := make(map[int]string)
	for _, below := range proctree.Descendants(os.Getpid(), 0) {
		born[below.PID] = below.Born
	}
	return born
}

// leftBehind kills the descendants that outlive the process and its group, and
// returns what they are.
func (p *process) leftBehind() []string {
	var left []string
	for late := time.Now().Add(vanishWithin); ; time.Sleep(10 * time.Millisecond) {
		left = nil
		for _, pid := range p.alive() {
			left = append(left, name(pid))
		}
		if len(left) == 0 || time.Now().After(late) {
			break
		}
	}
	for late := time.Now().Add(vanishWithin); len(p.alive()) > 0 && time.Now().Before(late); time.Sleep(time.Millisecond) {
		for _, pid := range p.alive() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	for reaped := 1; reaped > 0; { // those of the process's group that were adopted
		reaped, _ = syscall.Wait4(-p.cmd.Process.Pid, nil, syscall.WNOHANG, nil)
	}
	return left
}

// alive are the descendants that did not exist before the process, and are not below one
// that did: a database server of this process, for example, starts a child for each
// connection. An orphan of such a server cannot be told from one of the process.
func (p *process) alive() []int {
	others := make(map[int]bool)
	var pids []int
	for _, below := range proctree.Descendants(os.Getpid(), 0) { // parents first
		if others[below.Parent] || p.others[below.PID] == below.Born {
			others[below.PID] = true
		} else {
			pids = append(pids, below.PID)
		}
	}
	return pids
}

// name describes a process for people.
func name(pid int) string {
	command, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	text := strings.TrimSpace(strings.ReplaceAll(string(command), "\x00", " "))
	return strings.TrimSpace(strconv.Itoa(pid) + " " + text[:min(len(text), 100)])
}

package conformance

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
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

// descendants are the processes below this one, zombies included.
func descendants() map[int]bool {
	children := make(map[int][]int)
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			if _, parent, ok := status(pid); ok {
				children[parent] = append(children[parent], pid)
			}
		}
	}
	found := make(map[int]bool)
	var walk func(int)
	walk = func(pid int) {
		for _, child := range children[pid] {
			found[child] = true
			walk(child)
		}
	}
	walk(os.Getpid())
	return found
}

// status reads the state and the parent of a process.
func status(pid int) (state byte, parent int, ok bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, false
	}
	// The name, in parentheses, can hold anything.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 2 {
		return 0, 0, false
	}
	parent, err = strconv.Atoi(fields[1])
	return fields[0][0], parent, err == nil
}

// leftBehind kills the descendants that outlive the process and its group, and
// returns what they are.
func (p *process) leftBehind() []string {
	var left []string
	for late := time.Now().Add(vanishWithin); ; time.Sleep(10 * time.Millisecond) {
		left = nil
		for pid := range p.alive() {
			left = append(left, name(pid))
		}
		if len(left) == 0 || time.Now().After(late) {
			break
		}
	}
	for late := time.Now().Add(vanishWithin); len(p.alive()) > 0 && time.Now().Before(late); time.Sleep(time.Millisecond) {
		for pid := range p.alive() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	return left
}

// alive are the descendants that did not exist before the process. It reaps those
// that are dead and adopted.
func (p *process) alive() map[int]bool {
	found := descendants()
	for pid := range found {
		state, parent, ok := status(pid)
		switch {
		case p.others[pid], !ok:
			delete(found, pid)
		case state == 'Z':
			if parent == os.Getpid() && pid != p.cmd.Process.Pid {
				_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
			}
			delete(found, pid)
		}
	}
	return found
}

// name describes a process for people.
func name(pid int) string {
	command, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	text := strings.TrimSpace(strings.ReplaceAll(string(command), "\x00", " "))
	return strings.TrimSpace(strconv.Itoa(pid) + " " + text[:min(len(text), 100)])
}

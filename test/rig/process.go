package rig

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Process identifies a process. A later process with the same id is another Process.
type Process struct {
	PID     int
	started string // in clock ticks since boot
}

// Name is the name of the program that the process runs, as the kernel keeps it.
func (p Process) Name() string {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p.PID))
	if err != nil {
		return "?"
	}
	return strings.TrimSpace(string(name))
}

// Alive reports whether the process still runs. A zombie does not.
func (p Process) Alive() bool {
	found, ok := stat(p.PID)
	return ok && found.started == p.started && found.state != "Z"
}

// Signal sends the process a signal.
func (p Process) Signal(signal syscall.Signal) error { return syscall.Kill(p.PID, signal) }

// ProcessOf returns the process that has the id now.
func ProcessOf(pid int) (Process, error) {
	found, ok := stat(pid)
	if !ok {
		return Process{}, fmt.Errorf("there is no process %d", pid)
	}
	return Process{PID: pid, started: found.started}, nil
}

// Started is when the process started, in clock ticks since boot.
func (p Process) Started() uint64 {
	ticks, _ := strconv.ParseUint(p.started, 10, 64)
	return ticks
}

// Args is the command line of the process.
func (p Process) Args() []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID))
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}

// Children lists the children of a process.
func Children(parent int) []Process {
	var children []Process
	for _, p := range Descendants(parent) {
		if found, ok := stat(p.PID); ok && found.parent == parent {
			children = append(children, p)
		}
	}
	return children
}

// Descendants lists all descendants of a process.
func Descendants(root int) []Process {
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	stats := make(map[int]status, len(entries))
	for _, entry := range entries {
		pid, err := strconv.Atoi(filepath.Base(entry))
		if err != nil {
			continue
		}
		if found, ok := stat(pid); ok {
			stats[pid] = found
		}
	}
	var below []Process
	for pid, found := range stats {
		for up := found.parent; up > 0; up = stats[up].parent {
			if up == root {
				below = append(below, Process{PID: pid, started: found.started})
				break
			}
		}
	}
	return below
}

type status struct {
	parent         int
	state, started string
}

// stat reads /proc/PID/stat, see proc(5): the state, the parent and the start time are
// the first, second and twentieth field after the command in parentheses.
func stat(pid int) (status, bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return status{}, false
	}
	line := string(text)
	fields := strings.Fields(line[strings.LastIndexByte(line, ')')+1:])
	if len(fields) < 20 {
		return status{}, false
	}
	parent, err := strconv.Atoi(fields[1])
	return status{parent: parent, state: fields[0], started: fields[19]}, err == nil
}

package embedded

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// runsIn says whether the process is a server of this data directory, which
// is its working directory. Process numbers are reused.
func runsIn(data string, pid int) bool {
	dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	return err == nil && dir == data
}

// orphaned says whether the process that started the server is gone: its
// parent is another one then. A reused number does not deceive it.
func orphaned(pid int, owner string) bool {
	if owner == "" {
		return false
	}
	parent, ok := parentOf(pid)
	return !ok || strconv.Itoa(parent) != owner
}

// parentOf returns false for a process that is gone.
func parentOf(pid int) (parent int, ok bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	// The name in parentheses may hold anything; state and parent follow it.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 2 {
		return 0, false
	}
	parent, err = strconv.Atoi(fields[1])
	return parent, err == nil
}

// childrenOf returns the processes that this one has started.
func childrenOf(pid int) []int {
	entries, _ := os.ReadDir("/proc") // what was read before an error counts
	var children []int
	for _, entry := range entries {
		child, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if parent, ok := parentOf(child); ok && parent == pid {
			children = append(children, child)
		}
	}
	return children
}

// lockHolders returns the processes that work in the data directory and hold
// the lock of its server, those only that we may look into. Others who work
// there, such as a shell, have no such lock.
func lockHolders(h home) []*os.Process {
	entries, _ := os.ReadDir("/proc") // what was read before an error counts
	var holders []*os.Process
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || !runsIn(h.data(), pid) {
			continue
		}
		process, err := os.FindProcess(pid)
		if err != nil {
			continue
		}
		// Asked after it was found: whoever has the number now is who we hold.
		lock, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", pid, serverLockFD))
		if err == nil && lock == h.serverLockPath() && runsIn(h.data(), pid) {
			holders = append(holders, process)
		} else {
			_ = process.Release()
		}
	}
	return holders
}

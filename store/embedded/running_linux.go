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
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true // gone altogether
	}
	// The name in parentheses may hold anything; state and parent follow it.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 2 {
		return true
	}
	parent, err := strconv.Atoi(fields[1])
	return err != nil || strconv.Itoa(parent) != owner
}

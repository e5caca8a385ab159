package embedded

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// childAttributes gives the child its user, a process group of its own (so that Ctrl-C
// on the terminal does not reach it), and the signal that it gets when the thread that
// starts it ends.
func childAttributes(owner account, onDeath syscall.Signal) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: onDeath}
	if owner.other {
		attributes.Credential = &syscall.Credential{Uid: uint32(owner.uid), Gid: uint32(owner.gid)}
	}
	return attributes
}

// runsIn reports whether the process is a server of this data directory, which is its
// working directory. Another process may have got its pid.
func runsIn(data string, pid int) bool {
	dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	return err == nil && dir == data
}

// orphaned reports whether the process that started the server is gone. The server's
// parent is then a different process, even if another process now has the pid.
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
	// The name in parentheses may contain anything; state and parent follow it.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 2 {
		return 0, false
	}
	parent, err = strconv.Atoi(fields[1])
	return parent, err == nil
}

// childrenOf returns the processes that this one has started.
func childrenOf(pid int) []int {
	var children []int
	for _, child := range processes() {
		if parent, ok := parentOf(child); ok && parent == pid {
			children = append(children, child)
		}
	}
	return children
}

func processes() (pids []int) {
	entries, _ := os.ReadDir("/proc") // the children read before an error count
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// lockHolders returns the processes that work in the data directory and hold the lock
// of its server, if we have the privilege to see that. Other processes that work
// there, such as a shell, do not have the lock.
func lockHolders(h home) []*os.Process {
	var holders []*os.Process
	for _, pid := range processes() {
		if !runsIn(h.data(), pid) {
			continue
		}
		process, err := os.FindProcess(pid)
		if err != nil {
			continue
		}
		// We hold a handle now, so the answers below are about the process that we kill.
		lock, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", pid, serverLockFD))
		if err == nil && lock == h.serverLockPath() && runsIn(h.data(), pid) {
			holders = append(holders, process)
		} else {
			_ = process.Release()
		}
	}
	return holders
}

// memoryLimits are the files in which control groups limit the memory of this process:
// version 2 as a container sees its own, and version 1.
var memoryLimits = []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}

// thisMachine measures the machine, and the file system of dir.
func thisMachine(dir string) machine {
	var m machine
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err == nil {
		m.memory = uint64(info.Totalram) * uint64(info.Unit) // 32 bits elsewhere
	}
	for _, file := range memoryLimits {
		if limit, ok := readLimit(file); ok && m.memory > 0 {
			m.memory = min(m.memory, limit)
		}
	}
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err == nil {
		m.disk = stat.Blocks * uint64(stat.Bsize)
	}
	return m
}

// readLimit returns false for "max", and if there is no such file.
func readLimit(file string) (uint64, bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	limit, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	return limit, err == nil
}

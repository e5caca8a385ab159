package embedded

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// memoryLimits are where control groups say how much memory there is for this
// process: version 2 as a container sees its own, and version 1.
var memoryLimits = []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}

// thisMachine looks at the machine, and at the file system of dir.
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

// readLimit is false for "max" and where there is no such file.
func readLimit(file string) (uint64, bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	limit, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	return limit, err == nil
}

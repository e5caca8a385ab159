package runtime

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// host identifies the boot of this system and this process's PID namespace. Two processes
// with the same host see each other under the same process ids.
func host() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return unknownHost
	}
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return unknownHost
	}
	return strings.TrimSpace(string(boot)) + " " + namespace
}

// startOf returns when a process started, in clock ticks since boot, and 0 if there is no
// such process or it is a zombie. A process with a thread that has not ended yet still
// exists: its files may be open, and its plugins only end when those are closed.
// It returns false if the process exists but cannot be read, because it belongs to
// another user or this process has too many open files.
func startOf(pid int) (ticks int64, known bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
	}
	// The second field, the command in brackets, may contain anything. After it, the
	// first field is the state, the eighteenth the number of threads, and the twentieth
	// the start time.
	text := string(stat)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 {
		return 0, false
	}
	if noThreads := fields[17] == "0" || fields[17] == "1"; noThreads && (fields[0] == "Z" || fields[0] == "X") {
		return 0, true
	}
	ticks, err = strconv.ParseInt(fields[19], 10, 64)
	return ticks, err == nil
}

package runtime

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// host names the boot of this system and our process namespace: two processes
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

// startOf returns when a process started, in clock ticks since boot; 0 when
// there is no such process or it is only waiting to be buried.
func startOf(pid int) int64 {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The second field, the command in brackets, may contain anything; the
	// state is the first field after it and the start time the twentieth.
	text := string(stat)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return 0
	}
	ticks, err := strconv.ParseInt(fields[19], 10, 64)
	if err != nil {
		return 0
	}
	return ticks
}

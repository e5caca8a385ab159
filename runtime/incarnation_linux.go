package runtime

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
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
// there is no such process or it is only waiting to be buried. While any of its
// threads is still on its way out, it is there: its files may be open, and its
// handlers die when these are closed. It is not known
// where a process that exists cannot be looked at: because it is another
// user's, or because we have run out of open files.
func startOf(pid int) (ticks int64, known bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
	}
	// The second field, the command in brackets, may contain anything; the state
	// is the first field after it, the number of threads the eighteenth and the
	// start time the twentieth.
	text := string(stat)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 {
		return 0, false
	}
	if buried := fields[17] == "0" || fields[17] == "1"; buried && (fields[0] == "Z" || fields[0] == "X") {
		return 0, true
	}
	ticks, err = strconv.ParseInt(fields[19], 10, 64)
	return ticks, err == nil
}

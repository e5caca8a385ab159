package osprocess

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-jobs/holdfast/plugin/internal/proctree"
)

// orphansTimeout bounds how long killMarked tries.
const orphansTimeout = 2 * time.Second

// killMarked kills every process of this user whose environment contains the mark, even
// if the process has left its process group. In the environment, each variable is
// between two NULs. killMarked repeats until it finds none, since processes may fork in
// the meantime.
func killMarked(mark string) {
	found := true
	for end := time.Now().Add(orphansTimeout); found && time.Now().Before(end); {
		found = killMarkedOnce([]byte(mark))
	}
}

func killMarkedOnce(mark []byte) bool {
	found := false
	for _, pid := range proctree.IDs() {
		if pid == os.Getpid() || !marked(pid, mark) {
			continue
		}
		// The handle always means the same process. Check the mark again, since another
		// process may have got the id before the handle existed.
		process, err := os.FindProcess(pid)
		if err != nil {
			continue
		}
		if marked(pid, mark) {
			found = process.Signal(unix.SIGKILL) == nil || found
		}
		_ = process.Release()
	}
	return found
}

// continueKeepers continues the keepers of the home that are stopped. They notice then
// that the orchestrator has died, and kill what only they can find.
func continueKeepers(home string) {
	for _, pid := range proctree.IDs() {
		command, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		words := strings.Split(string(command), "\x00") // the last one is empty
		if len(words) == 5 && words[1] == keeperArgument && words[3] == home {
			_ = unix.Kill(pid, unix.SIGCONT)
		}
	}
}

func marked(pid int, mark []byte) bool {
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	return bytes.Contains(append([]byte{0}, environ...), mark)
}

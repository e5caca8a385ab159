package child

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/census"
)

// killGroupAtHangup makes the kernel kill the process group when the last writer
// of the pipe is gone. The parent-death signal reaches only the process that was
// started; this reaches what it has forked as well, whatever ends the
// orchestrator. Where the kernel does not offer it, nothing is lost but that.
func killGroupAtHangup(read *os.File, group int) {
	fd := read.Fd()
	_, _ = unix.FcntlInt(fd, unix.F_SETOWN, -group)
	_, _ = unix.FcntlInt(fd, unix.F_SETSIG, int(unix.SIGKILL))
	setAsync(fd, true)
}

func spareGroupAtHangup(read *os.File) { setAsync(read.Fd(), false) }

func setAsync(fd uintptr, on bool) {
	flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0)
	if err != nil {
		return
	}
	flags &^= unix.O_ASYNC
	if on {
		flags |= unix.O_ASYNC
	}
	_, _ = unix.FcntlInt(fd, unix.F_SETFL, flags)
}

// markedPatience bounds how long killMarked goes on.
const markedPatience = 2 * time.Second

// killMarked kills every process of this user whose environment, as a list in
// which each variable stands between two NULs, contains the mark. It finds those
// that left their process group. It looks again until it finds none, for they
// may fork meanwhile, but not for ever.
func killMarked(mark string) {
	found := true
	for end := time.Now().Add(markedPatience); found && time.Now().Before(end); {
		found = killMarkedOnce([]byte(mark))
	}
}

func killMarkedOnce(mark []byte) bool {
	found := false
	for _, pid := range census.IDs() {
		if pid == os.Getpid() || !marked(pid, mark) {
			continue
		}
		// The handle refers to one process for good. Only if that is still
		// the marked one is it killed: the id may have changed hands.
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

func marked(pid int, mark []byte) bool {
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	return bytes.Contains(append([]byte{0}, environ...), mark)
}

package plugin

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// stderr is the process's standard error, whatever the variable in package os
// says.
var stderr = os.Stderr

// streams is the standard output of the process, while go-plugin needs it.
type streams struct{ handshake *os.File }

// divertStreams moves standard output aside for the one line that go-plugin
// prints, and makes both file descriptor 1 and os.Stdout the same as standard
// error, so that nothing else can get into that pipe, or be blocked by it.
func divertStreams() (streams, error) {
	aside, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return streams{}, fmt.Errorf("keep standard output: %w", err)
	}
	if err := duplicate(2, 1, 0); err != nil {
		return streams{}, fmt.Errorf("redirect standard output: %w", err)
	}
	// Files that reclaim makes the same as this one do not poll.
	if err := unix.SetNonblock(2, false); err != nil {
		return streams{}, fmt.Errorf("standard error: %w", err)
	}
	return streams{handshake: os.NewFile(uintptr(aside), "handshake")}, nil
}

// lend lets go-plugin print its line. It puts a pipe of its own into
// os.Stdout's place just after.
func (s streams) lend() { os.Stdout = s.handshake }

// reclaim undoes what go-plugin has done to os.Stdout and os.Stderr after the
// handshake: they are pipes whose contents it would send over a stream that
// nobody opens, and whoever printed more than fits would wait for ever. Both
// become standard error, also for those who have got hold of them meanwhile.
func (s streams) reclaim() error {
	for _, file := range []*os.File{os.Stdout, os.Stderr} {
		if file == s.handshake || file == stderr {
			continue
		}
		if err := becomeStderr(file); err != nil {
			return fmt.Errorf("reclaim %s: %w", file.Name(), err)
		}
	}
	return s.handshake.Close()
}

// setFree is how long writes to a full pipe are refused, so that whoever waits
// for room in it waits no longer.
const setFree = 100 * time.Millisecond

func becomeStderr(file *os.File) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var full bool
	var duplicating error
	if err := raw.Control(func(fd uintptr) {
		room, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, 0)
		full = room == 0 && err == nil
		duplicating = duplicate(2, int(fd), unix.O_CLOEXEC)
	}); err != nil {
		return err
	}
	if full {
		_ = file.SetWriteDeadline(time.Now())
		time.AfterFunc(setFree, func() { _ = file.SetWriteDeadline(time.Time{}) })
	}
	return duplicating
}

package keeper

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Supported says whether there are keepers on this system.
const Supported = true

// startPatience bounds how long a keeper may take to start the process:
// milliseconds, if nobody stops it.
const startPatience = 30 * time.Second

// Keeper is a process that runs under a keeper.
type Keeper struct {
	cmd     *exec.Cmd
	line    *os.File
	reports *json.Decoder
	pid     int
}

// Files are the standard files of the process, and the one that it executes if the
// launch says so.
type Files struct {
	Stdin, Stdout, Stderr, Binary *os.File
}

// Start runs the command, which is to call Main, and has it launch the process. It
// returns when the process runs, or the error of its start.
func Start(command []string, l *Launch, files Files) (*Keeper, error) {
	ours, theirs, err := openLine()
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{
		Path: command[0], Args: command,
		// Our own environment holds secrets. One processor is enough. Built with the
		// race detector it would sleep for a second before it exits, and we wait for that.
		Env:   []string{"GOMAXPROCS=1", "GORACE=atexit_sleep_ms=0"},
		Stdin: files.Stdin, Stdout: files.Stdout, Stderr: files.Stderr,
		ExtraFiles: []*os.File{theirs},
		// A signal to our group or from our terminal is not for it.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if l.Open {
		cmd.ExtraFiles = append(cmd.ExtraFiles, files.Binary)
	}
	err = cmd.Start()
	// Ours must be the only end but the keeper's for either to see the other go.
	_ = theirs.Close()
	if err != nil {
		_ = ours.Close()
		return nil, fmt.Errorf("start its keeper: %w", err)
	}
	k := &Keeper{cmd: cmd, line: ours, reports: json.NewDecoder(ours)}
	if err := k.launch(l); err != nil {
		// It goes when the line hangs up, unless it cannot go any more.
		_ = ours.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, err
	}
	return k, nil
}

func openLine() (ours, theirs *os.File, err error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	if err := unix.SetNonblock(ends[0], true); err != nil {
		_, _ = unix.Close(ends[0]), unix.Close(ends[1])
		return nil, nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(ends[0]), "line"), os.NewFile(uintptr(ends[1]), "line"), nil
}

func (k *Keeper) launch(l *Launch) error {
	if err := k.line.SetDeadline(time.Now().Add(startPatience)); err != nil {
		return err
	}
	if err := writeLaunch(k.line, l); err != nil {
		return fmt.Errorf("its keeper: %w", err)
	}
	var first report
	err := k.reports.Decode(&first)
	switch {
	case err != nil:
		return fmt.Errorf("its keeper: %w", err)
	case first.Failed != nil:
		return first.Failed.err()
	case first.Started == 0:
		return errors.New("its keeper says something else than what it has started")
	}
	k.pid = first.Started
	return k.line.SetDeadline(time.Time{})
}

// PID is the id of the process, and of its process group.
func (k *Keeper) PID() int { return k.pid }

// KeeperPID is the id of its keeper.
func (k *Keeper) KeeperPID() int { return k.cmd.Process.Pid }

// AwaitExit returns when the process has exited. Until Collect its id belongs to no
// other, unless the keeper has died.
func (k *Keeper) AwaitExit() {
	var next report
	_ = k.reports.Decode(&next)
}

// Collect is called once, after AwaitExit. It returns when all that the process has
// forked is gone as well, as far as the kernel lets it die within Patience. An error
// says that the keeper has died before: then the process was killed, but perhaps not
// all of its family.
func (k *Keeper) Collect() (Ending, error) {
	k.send(collect, true)
	var last report
	_ = k.reports.Decode(&last)
	_ = k.line.Close()
	err := k.cmd.Wait()
	if last.Ended == nil {
		return Ending{}, fmt.Errorf("its keeper has ended: %w", err)
	}
	return *last.Ended, nil
}

// KillAt has the process and all its family killed at that time, whatever has become
// of us by then, unless another time is named before. A zero time takes it back. It
// may be called from any goroutine; after the end it does nothing. It never waits: an
// order is lost only when the keeper has not read the last few hundred.
func (k *Keeper) KillAt(at time.Time) {
	if at.IsZero() {
		k.send(stay, false)
		return
	}
	k.send(order(monotonic()+time.Until(at)), false)
}

// send tries whether there is room for the order, and may wait for it. A deadline
// would not do instead: one that passes before the write is tried loses the order.
func (k *Keeper) send(o order, wait bool) {
	line, err := k.line.SyscallConn()
	if err != nil {
		return
	}
	_ = line.Write(func(fd uintptr) (done bool) {
		for {
			_, err := unix.Write(int(fd), o.bytes())
			if !errors.Is(err, unix.EINTR) {
				return !wait || !errors.Is(err, unix.EAGAIN)
			}
		}
	})
}

// monotonic is the clock that all processes of the machine share, and that Go's timers
// follow.
func monotonic() time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	return time.Duration(now.Nano())
}

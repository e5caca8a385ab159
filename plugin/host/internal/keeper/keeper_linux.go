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

// startTimeout bounds how long a keeper may take to start the process. Unless somebody
// stops the keeper, it takes milliseconds.
const startTimeout = 30 * time.Second

// Keeper is a process that runs under a keeper.
type Keeper struct {
	cmd     *exec.Cmd
	line    *os.File
	reports *json.Decoder
	pid     int
}

// Files are the standard files of the process, and the file to execute if Launch.Open
// is set.
type Files struct {
	Stdin, Stdout, Stderr, Binary *os.File
}

// Start runs the command, which must call Main, to launch the process. It returns when the
// process runs, or has failed to start.
func Start(command []string, l *Launch, files Files) (*Keeper, error) {
	ours, theirs, err := openLine()
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{
		Path: command[0], Args: command,
		// Our own environment holds secrets. One processor is enough. The other variable
		// is for the race detector, which makes a program sleep before it exits.
		Env:   []string{"GOMAXPROCS=1", "GORACE=atexit_sleep_ms=0"},
		Stdin: files.Stdin, Stdout: files.Stdout, Stderr: files.Stderr,
		ExtraFiles: []*os.File{theirs},
		// Signals to our group or from our terminal must not reach it.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if l.Open {
		cmd.ExtraFiles = append(cmd.ExtraFiles, files.Binary)
	}
	err = cmd.Start()
	// If we kept this end open, we would not notice that the keeper has died.
	_ = theirs.Close()
	if err != nil {
		_ = ours.Close()
		return nil, fmt.Errorf("start its keeper: %w", err)
	}
	k := &Keeper{cmd: cmd, line: ours, reports: json.NewDecoder(ours)}
	if err := k.launch(l); err != nil {
		// A keeper that still runs ends when the line hangs up.
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
	if err := k.line.SetDeadline(time.Now().Add(startTimeout)); err != nil {
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
		return first.Failed
	case first.Started == 0:
		return errors.New("its keeper does not report what it has started")
	}
	k.pid = first.Started
	return k.line.SetDeadline(time.Time{})
}

// PID is the id of the process, and of its process group.
func (k *Keeper) PID() int { return k.pid }

// KeeperPID is the id of its keeper.
func (k *Keeper) KeeperPID() int { return k.cmd.Process.Pid }

// AwaitExit returns when the process has exited. No other process gets its id before
// Collect, unless the keeper has died.
func (k *Keeper) AwaitExit() {
	var next report
	_ = k.reports.Decode(&next)
}

// Collect waits until the descendants of the process are gone too, at most for
// KillTimeout, and returns how the process ended. Call it once, after AwaitExit. An
// error means that the keeper died first. Then the process was killed, but perhaps not
// all of its descendants.
func (k *Keeper) Collect() (Ending, error) {
	k.send(mayCollect, true)
	var last report
	_ = k.reports.Decode(&last)
	_ = k.line.Close()
	err := k.cmd.Wait()
	if last.Ended == nil {
		return Ending{}, fmt.Errorf("its keeper has ended: %w", err)
	}
	return *last.Ended, nil
}

// KillAt makes the keeper kill the process and its descendants at that time, unless it
// gets another time first; a zero time means never. The keeper does so even if this
// process is stopped or dies. Any goroutine may call KillAt; after the end of the
// process it does nothing. It never blocks: if the keeper has not read the last few
// hundred orders, the order is lost.
func (k *Keeper) KillAt(at time.Time) {
	if at.IsZero() {
		k.send(never, false)
		return
	}
	k.send(order(monotonic()+time.Until(at)), false)
}

// send writes the order. If there is no room for it, send waits if wait is set, and
// drops the order if not. A write with a deadline would be wrong: it loses the order if
// the deadline passes before the first try.
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

// monotonic is the clock that all processes of the machine share and Go's timers use.
func monotonic() time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	return time.Duration(now.Nano())
}

package osprocess

import (
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// wardenPause is the wait before a dead warden is replaced.
	wardenPause = time.Second
	// sweepTimeout bounds how long a warden tries to sweep.
	sweepTimeout = 10 * time.Second
)

// Warden is a small process that outlives this one. When the pipe between the two hangs
// up, it sweeps the home. That kills everything that the plugins have started, in any
// session. What the kernel does by itself (see keeper.DieWithThread and
// killGroupAtHangup) does not reach processes that left their process group.
type Warden struct {
	command []string
	home    string
	log     *slog.Logger

	mu     sync.Mutex
	closed bool
	line   *os.File
	done   sync.WaitGroup
	stop   chan struct{}
}

// StartWarden runs the command with the path of the home as its last argument. The
// command must call Attend with it.
func StartWarden(command []string, home *Home, log *slog.Logger) (*Warden, error) {
	w := &Warden{command: command, home: home.Path, log: log, stop: make(chan struct{})}
	cmd, err := w.start()
	if err != nil {
		return nil, err
	}
	w.done.Go(func() { w.keep(cmd) })
	return w, nil
}

func (w *Warden) start() (*exec.Cmd, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = read.Close() }()
	cmd := &exec.Cmd{
		Path: w.command[0], Args: append(append([]string{}, w.command...), w.home),
		// Our own environment holds secrets. The variable is for the race detector,
		// which makes a program sleep before it exits.
		Env: []string{"GORACE=atexit_sleep_ms=0"}, Dir: "/", Stdin: read,
		// Signals to our group or from our terminal must not reach the warden.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		_ = write.Close()
		return nil, os.ErrClosed
	}
	if err := cmd.Start(); err != nil {
		_ = write.Close()
		return nil, err
	}
	w.line = write
	return cmd, nil
}

// keep replaces the warden if it dies.
func (w *Warden) keep(cmd *exec.Cmd) {
	for cmd != nil {
		err := cmd.Wait()
		w.mu.Lock()
		_ = w.line.Close()
		closed := w.closed
		w.mu.Unlock()
		if closed {
			return
		}
		w.log.Warn("the warden has ended; starting another", "error", deathOf(err))
		cmd = w.again()
	}
}

func (w *Warden) again() *exec.Cmd {
	for {
		select {
		case <-w.stop:
			return nil
		case <-time.After(wardenPause):
		}
		cmd, err := w.start()
		if err == nil {
			return cmd
		}
		w.log.Warn("cannot start a warden", "error", err)
	}
}

// Close ends the warden. Remove the home first, or the warden sweeps the rest of it.
func (w *Warden) Close() {
	w.mu.Lock()
	w.closed = true
	if w.line != nil {
		_ = w.line.Close()
	}
	w.mu.Unlock()
	close(w.stop)
	w.done.Wait()
}

// Attend runs a warden or a keeper, and returns the exit code. The commands of
// StartWarden and Spec.Keeper must call it with their last argument.
func Attend(argument string) int {
	if strings.HasPrefix(argument, keeperArgument) {
		return attendKeeper()
	}
	// Service managers signal all processes of a service. The warden stays.
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	if !sweepAfter(os.Stdin, argument) {
		return 1
	}
	return 0
}

// sweepAfter waits until the line hangs up, and then sweeps the home until it is gone.
func sweepAfter(line io.Reader, home string) bool {
	_, _ = io.Copy(io.Discard, line)
	for end := time.Now().Add(sweepTimeout); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		// After the owner is killed, the kernel takes a moment to release its lock.
		if _, err := os.Lstat(filepath.Join(home, lockName)); err != nil || sweepHome(home) {
			return true
		}
	}
	return false
}

package child

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

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/keeper"
)

const (
	// wardenPause is the wait before a warden that has died is replaced.
	wardenPause = time.Second
	// wardenPatience bounds how long a warden tries to sweep, and how long it
	// is waited for.
	wardenPatience = 10 * time.Second
)

// Warden is a small process of our own that outlives this one: when the pipe
// between the two hangs up it sweeps the home, which kills whatever handlers have
// started, in whatever session. The kernel's own means (see setFate and
// killGroupAtHangup) do not reach what has left its process group.
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

// StartWarden runs the command, which is to call Attend with the path of the home
// that it gets as a last argument.
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
		// Our own environment holds secrets. Built with the race detector it would
		// sleep for a second before it exits, and Close waits for that.
		Env: []string{"GORACE=atexit_sleep_ms=0"}, Dir: "/", Stdin: read,
		// A signal to our group or from our terminal is not for the warden.
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

// keep replaces the warden when it dies.
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
		w.log.Warn("the warden has ended; another is started", "error", deathOf(err))
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
		w.log.Warn("no warden can be started", "error", err)
	}
}

// Close lets the warden go. The home should be removed by then: what is left of
// it is swept.
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

// Attend is the whole life of a process that StartWarden or Spec.Keeper has run,
// with the last argument that it has got: a warden's or a keeper's. It returns the
// exit code.
func Attend(argument string) int {
	if strings.HasPrefix(argument, keeperArgument) {
		return keeper.Main()
	}
	// Whoever stops a service signals all of its processes; ours is to stay.
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	if !clearUp(os.Stdin, argument) {
		return 1
	}
	return 0
}

// clearUp waits until the line hangs up, and then sweeps the home until nothing is
// left of it.
func clearUp(line io.Reader, home string) bool {
	_, _ = io.Copy(io.Discard, line)
	for end := time.Now().Add(wardenPatience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		// The lock of an owner that is being killed falls a moment later.
		if _, err := os.Lstat(filepath.Join(home, lockName)); err != nil || sweepHome(home) {
			return true
		}
	}
	return false
}

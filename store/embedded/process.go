package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// process is a server that this process has started.
type process struct {
	pid    int
	handle *os.Process   // signals nobody who gets its number after it
	done   chan struct{} // closed when it has ended and its log is read, up to a second later
	exit   error         // set before done is closed
	log    *serverLog
	home   *home // where it serves; nil in a container
	// killAfter is how long an immediate shutdown may take.
	killAfter time.Duration
}

// childOf prepares a command that runs in the home as its owner. onDeath is
// sent to it when this process dies (on Linux). Of the environment only what
// finds programs and libraries goes in: variables such as PGDATA would act.
func childOf(h home, path string, args []string, onDeath syscall.Signal) *exec.Cmd {
	cmd := exec.Command(path, args...) //nolint:noctx // ended by signals; see outputOf and process.end
	cmd.Dir = h.dir
	cmd.SysProcAttr = childAttributes(h.owner, onDeath)
	cmd.Env = []string{"LC_ALL=C", "HOME=" + h.dir}
	for _, name := range []string{"PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"} {
		if value, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	return cmd
}

// outputOf runs a short command to its end, or kills it when ctx ends. An
// error holds the last lines of the output.
func outputOf(ctx context.Context, cmd *exec.Cmd) (string, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second
	done := make(chan struct{})
	var err error
	started := make(chan error, 1)
	go func() {
		defer close(done)
		// The death signal is tied to the thread that started the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		startErr := cmd.Start()
		started <- startErr
		if startErr == nil {
			err = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		<-done
		return "", err
	}
	select {
	case <-done:
	case <-ctx.Done():
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-done
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", cmd.Args[0], err, lastLines(out.String(), keptLines))
	}
	return strings.TrimSpace(out.String()), nil
}

// launch starts a server. One thread of this process belongs to it until it
// ends, because the death signal is tied to the thread, not to the process.
func launch(cmd *exec.Cmd, killAfter time.Duration, log *slog.Logger) (*process, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("launch: %w", err)
	}
	cmd.Stdout, cmd.Stderr = write, write
	p := &process{done: make(chan struct{}), log: &serverLog{log: log}, killAfter: killAfter}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer func() { _ = read.Close() }()
		err := cmd.Start()
		_ = write.Close()
		started <- err
		if err != nil {
			return
		}
		followed := make(chan struct{})
		go func() {
			defer close(followed)
			p.log.follow(read)
		}()
		p.exit = cmd.Wait()
		// Children that outlive the server for a moment hold the pipe too.
		_ = read.SetReadDeadline(time.Now().Add(time.Second))
		<-followed
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("launch: %w", err)
	}
	p.pid, p.handle = cmd.Process.Pid, cmd.Process
	return p, nil
}

// awaitReady returns when the server accepts connections.
func (p *process) awaitReady(ctx context.Context, h home) error {
	for {
		if state, ok := readPidFile(h); ok && state.pid == p.pid && state.ready {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("the server ended (%w): %s", exitError(p.exit), p.log.last())
		case <-ctx.Done():
			return fmt.Errorf("the server is not ready (%w): %s", context.Cause(ctx), p.log.last())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// end asks for a fast shutdown, for an immediate one when ctx ends, and kills
// in the end.
func (p *process) end(ctx context.Context) error {
	defer p.killOrphans()
	p.signal(syscall.SIGINT)
	select {
	case <-p.done:
		return exitOf(p.exit)
	case <-ctx.Done():
	}
	p.signal(syscall.SIGQUIT)
	select {
	case <-p.done:
	case <-time.After(p.killAfter):
		p.kill()
		<-p.done
	}
	return fmt.Errorf("no fast shutdown: %w", context.Cause(ctx))
}

// kill ends the server and its children. Those that are stuck as well would not
// notice that it is gone, and would keep the next server from starting. While it
// is stopped it has no more children, and the numbers of those it has stay theirs.
func (p *process) kill() {
	p.signal(syscall.SIGSTOP)
	children := childrenOf(p.pid)
	if !p.signal(0) {
		return // the children may be those of somebody else, who has got the number
	}
	for _, child := range children {
		_ = syscall.Kill(child, syscall.SIGKILL)
	}
	p.signal(syscall.SIGKILL)
}

// killOrphans ends the children of a server that somebody else has killed. Most
// notice by themselves, but not those that are stuck.
func (p *process) killOrphans() {
	if p.home == nil {
		return
	}
	for deadline := time.Now().Add(orphansEndWithin); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		orphans := p.home.orphansOf(p.pid)
		if len(orphans) == 0 {
			return
		}
		for _, orphan := range orphans {
			_ = orphan.Kill()
			_ = orphan.Release()
		}
	}
}

// signal returns false when the server has ended. It is not done yet by then, as
// long as others hold its log, but its number may belong to somebody else.
func (p *process) signal(s syscall.Signal) bool {
	return !errors.Is(p.handle.Signal(s), os.ErrProcessDone)
}

// exitOf tells an orderly end from a crash that nobody asked for.
func exitOf(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the server did not end orderly: %w", err)
}

var errExited = errors.New("exit status 0")

func exitError(err error) error {
	if err == nil {
		return errExited
	}
	return err
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

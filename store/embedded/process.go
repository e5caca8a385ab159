package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// killAfter is how long an immediate shutdown may take before the server is killed.
	// After either, the next start has the same amount to recover.
	killAfter = time.Second
	// orphansEndWithin is how long the remaining processes of a dead server may
	// take to end after they were killed.
	orphansEndWithin = 500 * time.Millisecond
)

// process is a server that this process has started.
type process struct {
	pid    int
	handle *os.Process   // never signals another process that has got the same pid
	done   chan struct{} // closed when it has ended and its log is read, up to a second later
	exit   error         // set before done is closed
	log    *serverLog
	home   *home // where it serves; nil in a container
	// killAfter is how long an immediate shutdown may take.
	killAfter time.Duration
}

// childOf prepares a command that runs in the home as its owner, and is killed with
// its children when ctx ends. On Linux, it gets the signal onDeath when the thread
// that starts it ends. Its environment contains only the variables that are needed to
// find programs and libraries: others, such as PGDATA, would take effect.
func childOf(ctx context.Context, h home, path string, args []string, onDeath syscall.Signal) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
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

// outputOf runs a short command of childOf to its end. An error contains the last
// lines of the output.
func outputOf(ctx context.Context, cmd *exec.Cmd) (string, error) {
	runtime.LockOSThread() // the death signal is tied to the thread
	defer runtime.UnlockOSThread()
	out, err := cmd.CombinedOutput()
	text := strings.TrimSpace(string(out))
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		lines := strings.Split(text, "\n")
		return "", fmt.Errorf("%s: %w: %s", cmd.Args[0], err, strings.Join(lines[max(0, len(lines)-keptLines):], "\n"))
	}
	return text, nil
}

// launch starts a server. Until the server ends, one thread of this process is
// reserved for it, because the death signal is tied to the thread, not to the process.
func launch(cmd *exec.Cmd, killAfter time.Duration, log *slog.Logger) (*process, error) {
	p := &process{done: make(chan struct{}), log: &serverLog{log: log}, killAfter: killAfter}
	read, write := io.Pipe()
	cmd.Stdout, cmd.Stderr = write, write
	cmd.WaitDelay = time.Second // for children that outlive the server and hold its log
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		var following sync.WaitGroup
		following.Go(func() { p.log.follow(read) })
		if err := cmd.Wait(); !errors.Is(err, exec.ErrWaitDelay) {
			p.exit = err
		}
		_ = write.Close()
		following.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("launch: %w", err)
	}
	p.pid, p.handle = cmd.Process.Pid, cmd.Process
	return p, nil
}

// await repeats check until it succeeds, the process ends, or ctx ends. p is nil
// if the process is not ours.
func await(ctx context.Context, p *process, every time.Duration, check func() error) error {
	done, last := make(chan struct{}), func() string { return "" }
	if p != nil {
		done, last = p.done, func() string { return ": " + p.log.last() }
	}
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-done:
			if p.exit != nil {
				return fmt.Errorf("the server ended (%w)%s", p.exit, last())
			}
			return fmt.Errorf("the server ended%s", last())
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)%s", err, context.Cause(ctx), last())
		case <-time.After(every):
		}
	}
}

// end asks for a fast shutdown. When ctx ends, it asks for an immediate one, and
// finally it kills the server.
func (p *process) end(ctx context.Context) error {
	defer p.killOrphans()
	p.signal(syscall.SIGINT)
	select {
	case <-p.done:
		if p.exit != nil {
			return fmt.Errorf("the server did not shut down cleanly: %w", p.exit)
		}
		return nil
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

// undo ends a server whose start has failed.
func (p *process) undo(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	return p.end(ctx)
}

// kill ends the server and its children. Stuck children would not notice that the
// server is gone, and would keep the next one from starting. kill stops the server
// first: a stopped server starts no more children, and their pids cannot be reused.
func (p *process) kill() {
	p.signal(syscall.SIGSTOP)
	children := childrenOf(p.pid)
	if !p.signal(0) {
		return // they may be the children of another process that got the pid
	}
	for _, child := range children {
		_ = syscall.Kill(child, syscall.SIGKILL)
	}
	p.signal(syscall.SIGKILL)
}

// killOrphans ends the children of a server that somebody else has killed. Most
// notice it themselves, but not those that are stuck.
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

// signal returns false if the server has ended. done may still be open, as long as
// others hold the server's log, but the pid may already belong to another process.
func (p *process) signal(s syscall.Signal) bool {
	return !errors.Is(p.handle.Signal(s), os.ErrProcessDone)
}

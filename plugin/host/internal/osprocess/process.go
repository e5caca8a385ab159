// Package osprocess is the operating system's side of a plugin process: its start, its
// limits, its output, its socket directory, its death, and the death of everything that
// it forked.
//
// go-plugin calls a Process as its runner to start it. This package does everything
// else itself, since go-plugin's methods can block for ever.
package osprocess

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-plugin/runner"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/binary"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/cgroup"
	"github.com/holdfast-jobs/holdfast/plugin/internal/executable"
)

// Spec is what to launch.
type Spec struct {
	Name string
	// Binary is what to execute. The caller keeps it open.
	Binary *binary.File
	Args   []string
	// Env is the whole environment, except for what Provision adds.
	Env    []string
	Limits cgroup.Limits
	// Checksum is the SHA-256 of the binary in hex; empty for any.
	Checksum string
	// Identity is the user that the process runs as; nil for the orchestrator's own.
	Identity *Identity
	// Keeper is the program that runs as the keeper of the process. It must import this
	// package. Empty for this program. Linux only.
	Keeper string
	// Cgroups is where the process gets its cgroup; nil for none.
	Cgroups *cgroup.Tree
}

// outputTimeout is how long to read output after the process has exited, if another
// process keeps its pipes open.
const outputTimeout = 250 * time.Millisecond

// Process is the operating system's side of one process, until it is reaped. It is also
// go-plugin's runner, but go-plugin sees only the handshake line, an empty stderr, and
// the exit.
type Process struct {
	spec      Spec
	out       *Output
	environ   []string
	socketDir string

	handshakeOut *io.PipeReader
	handshakeIn  *io.PipeWriter
	// Only the goroutine that reads stdout uses handshaken.
	handshaken bool

	mu    sync.Mutex
	stdin *stdin
	// pid is 0 before the start.
	pid    int
	reaped bool
	// ended says that End was called. It forbids a start.
	ended bool
	// limitDeath says why the watch has killed the process; nil if it has not.
	limitDeath *Death

	// gone is closed when the process is reaped and its group is killed. After that,
	// death is valid.
	gone     chan struct{}
	death    Death
	readers  sync.WaitGroup
	launched launched
	// group is the process's cgroup; nil for none.
	group *cgroup.Group
	gauge gauge
}

var _ runner.Runner = (*Process)(nil)

// New prepares a process for go-plugin to start.
func New(spec Spec, out *Output) *Process {
	c := &Process{spec: spec, out: out, gone: make(chan struct{})}
	c.handshakeOut, c.handshakeIn = io.Pipe()
	return c
}

// Provision adds the environment and the socket directory that go-plugin has prepared.
// The socket directory also marks the process and its descendants. Call it before
// Start.
func (c *Process) Provision(environ []string, socketDir string) {
	c.environ, c.socketDir = environ, socketDir
}

// SocketDir returns the directory that was given to Provision; empty before.
func (c *Process) SocketDir() string { return c.socketDir }

// Output is where everything the process prints goes.
func (c *Process) Output() *Output { return c.out }

// Gone is closed when the process is reaped and its group killed.
func (c *Process) Gone() <-chan struct{} { return c.gone }

// Death is how the process ended, once it is gone.
func (c *Process) Death() Death { return c.death }

// PID is the process id; 0 before the start.
func (c *Process) PID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pid
}

// RemoveSocketDir removes what the process leaves on disk.
func (c *Process) RemoveSocketDir() {
	if c.socketDir != "" {
		_ = os.RemoveAll(c.socketDir)
	}
}

// Start launches the process. go-plugin calls it, once.
func (c *Process) Start(context.Context) error {
	cmd := &exec.Cmd{
		Path: c.spec.Binary.Path,
		Args: append([]string{c.spec.Binary.Path}, c.spec.Args...),
		// If a variable is duplicated, its last value counts.
		Env: append(append([]string{}, c.spec.Env...), c.environ...),
	}
	open, err := c.spec.Binary.ToExecute(c.spec.Checksum)
	if err != nil {
		return err
	}
	if open != nil {
		cmd.ExtraFiles = []*os.File{open}
	}
	if err := c.admitIdentity(open); err != nil {
		return err
	}
	pipes, err := makePipes(cmd)
	if err != nil {
		return err
	}
	err = c.fork(cmd, pipes.stdin)
	closeAll(pipes.theirs...)
	if err != nil {
		pipes.stdin.close()
		closeAll(pipes.stdout, pipes.stderr)
		return err
	}
	if w := newWatch(&c.spec, c.group, c.launched); w != nil {
		c.readers.Go(func() { w.run(c) })
	}
	c.readers.Go(func() { c.readStdout(pipes.stdout) })
	c.readers.Go(func() { readLines(pipes.stderr, c.out.From("stderr")) })
	go c.live(pipes)
	return nil
}

// live stays with the process until it is reaped.
func (c *Process) live(ours pipes) {
	died, descendantsGone := c.launched.reap(&c.mu, func() {
		c.killGroupLocked()
		c.reaped = true
		// Do not wait for other processes that keep its output open.
		_ = ours.stdout.SetReadDeadline(time.Now().Add(outputTimeout))
		_ = ours.stderr.SetReadDeadline(time.Now().Add(outputTimeout))
	})
	if !descendantsGone {
		if c.group != nil {
			c.group.Kill()
		}
		killMarked("\x00" + socketDirVariable + "=" + c.socketDir + "\x00")
	}
	c.CloseStdin()
	c.death = c.explain(died)
	c.removeGroup()
	close(c.gone)
}

func (c *Process) fork(cmd *exec.Cmd, in *stdin) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return context.Canceled
	}
	if c.spec.Cgroups != nil {
		group, err := c.spec.Cgroups.Make(filepath.Base(c.socketDir), c.spec.Limits)
		if err != nil {
			return fmt.Errorf("cgroup: %w", err)
		}
		c.group = group
	}
	l, err := launch(cmd, &c.spec, c.group, filepath.Dir(c.socketDir))
	if err != nil {
		c.removeGroup()
		return executable.ExplainStart(err)
	}
	err = confine(l.PID(), &c.spec)
	if err == nil && len(cmd.ExtraFiles) == 0 {
		err = c.spec.Binary.CheckExecuted()
	}
	if err != nil {
		_ = syscall.Kill(-l.PID(), syscall.SIGKILL)
		_, _ = l.reap(&sync.Mutex{}, func() {})
		c.removeGroup()
		return err
	}
	c.out.Log = c.out.Log.With("pid", l.PID())
	killGroupAtHangup(in.read, l.PID())
	c.stdin, c.launched, c.pid = in, l, l.PID()
	return nil
}

func (c *Process) removeGroup() {
	if c.group == nil {
		return
	}
	if err := c.group.Remove(); err != nil {
		c.out.Log.Warn("the cgroup of a plugin process is left behind", "error", err)
	}
}

// End kills the process and its group without waiting. You may call it at any time:
// before the start it prevents the start, and after the end it does nothing.
func (c *Process) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if c.pid != 0 && !c.reaped {
		c.killGroupLocked()
	}
}

// endForLimit kills the process because it exceeds a limit. Unlike after End, the death
// is the process's own fault.
func (c *Process) endForLimit(death Death) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pid == 0 || c.reaped || c.ended {
		return
	}
	if c.limitDeath == nil {
		c.limitDeath = &death
	}
	if c.group != nil {
		c.group.Kill()
	}
	c.killGroupLocked()
}

func (c *Process) killGroupLocked() {
	_ = syscall.Kill(-c.pid, syscall.SIGKILL)
	c.launched.proceed()
}

// explain adds the cause of a SIGKILL to the death, if it is known.
func (c *Process) explain(death Death) Death {
	c.mu.Lock()
	defer c.mu.Unlock()
	cause := c.limitDeath
	if death.Signal != syscall.SIGKILL || death.Cause != "" {
		return death
	}
	if cause == nil && c.group != nil && c.group.OutOfMemory() {
		killed := outOfMemory(c.spec.Limits.MemoryBytes)
		cause = &killed
	}
	if cause != nil {
		death.Cause, death.Detail = cause.Cause, cause.Detail
	}
	return death
}

// LeftByItself reports whether the process is gone, and End was not the reason.
func (c *Process) LeftByItself() bool {
	select {
	case <-c.gone:
	default:
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.ended || c.death.Signal != syscall.SIGKILL || c.death.Cause != ""
}

// KillAt makes the keeper kill the process with all that it has forked at that time,
// unless it gets another time before; a zero time means never. This holds even while the
// orchestrator is stopped. Any goroutine may call it. Outside of Linux it does nothing.
func (c *Process) KillAt(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pid != 0 && !c.reaped {
		c.launched.KillAt(at)
	}
}

// Await waits until the process is gone and its output is read. It returns false after
// the timeout, and true at once for a process that was never started.
func (c *Process) Await(timeout time.Duration) bool {
	if c.PID() == 0 {
		_ = c.handshakeIn.Close()
		return true
	}
	select {
	case <-c.gone:
		c.readers.Wait()
		return true
	case <-time.After(timeout):
		return false
	}
}

// CloseStdin tells the process that it is no longer needed.
func (c *Process) CloseStdin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stdin != nil {
		c.stdin.close()
		c.stdin = nil
	}
}

package child

import (
	"context"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-plugin/runner"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/cgroup"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/keeper"
	"github.com/holdfast-jobs/holdfast/plugin/internal/program"
)

// pipeTail is how long output is still read after the process has exited, when
// somebody else holds its pipes open.
const pipeTail = 250 * time.Millisecond

// Process is the operating system's side of one process, from fork to reaping. It
// serves go-plugin as its runner, and owns everything that go-plugin would block
// on: go-plugin sees the handshake line, an empty stderr and an exit, no more.
type Process struct {
	spec      Spec
	out       *Output
	environ   []string
	socketDir string

	handshakeOut *io.PipeReader
	handshakeIn  *io.PipeWriter
	// handshaken is touched by the goroutine that reads stdout only.
	handshaken bool

	mu       sync.Mutex
	lifeline *lifeline
	pid      int
	started  bool
	reaped   bool
	// doomed forbids a start, after a kill that came before it.
	doomed bool

	// gone is closed when the process is reaped and its group is killed;
	// death is valid from then on.
	gone  chan struct{}
	death Death
	pumps sync.WaitGroup
	// born is the process once it is started.
	born offspring
	// group is the process's cgroup; nil for none.
	group *cgroup.Group
	// sentence is why the watch has killed the process; nil when it has not.
	sentence *Death
}

var _ runner.Runner = (*Process)(nil)

// New prepares a process; go-plugin starts it.
func New(spec Spec, out *Output) *Process {
	c := &Process{spec: spec, out: out, gone: make(chan struct{})}
	c.handshakeOut, c.handshakeIn = io.Pipe()
	return c
}

// Provision gives the process what go-plugin has prepared for it: additional
// environment, and a socket directory of its own, which also marks it and its
// descendants. It is called before Start.
func (c *Process) Provision(environ []string, socketDir string) {
	c.environ, c.socketDir = environ, socketDir
}

// SocketDir is the one given to Provision; empty before.
func (c *Process) SocketDir() string { return c.socketDir }

// Output is where everything the process prints goes.
func (c *Process) Output() *Output { return c.out }

// Gone is closed when the process is reaped and its group killed.
func (c *Process) Gone() <-chan struct{} { return c.gone }

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

// Start launches the process. Only go-plugin calls it, once.
func (c *Process) Start(context.Context) error {
	cmd := &exec.Cmd{
		Path: c.spec.Binary.Path,
		Args: append([]string{c.spec.Binary.Path}, c.spec.Args...),
		// Of a variable that stands twice the last one holds.
		Env: append(append([]string{}, c.spec.Env...), c.environ...),
	}
	open, err := c.spec.Binary.ToExecute(c.spec.Checksum)
	if err != nil {
		return err
	}
	if open != nil && keeper.Supported {
		keeper.ExecOpen(cmd, open)
	}
	if err := c.admitIdentity(open); err != nil {
		return err
	}
	pipes, err := plumb(cmd)
	if err != nil {
		return err
	}
	started := make(chan error, 1)
	go c.live(cmd, pipes, started)
	err = <-started
	closeAll(pipes.theirs...)
	if err != nil {
		pipes.lifeline.cut()
		closeAll(pipes.stdout, pipes.stderr)
		return err
	}
	c.pumps.Go(func() { c.readStdout(pipes.stdout) })
	c.pumps.Go(func() { c.readStderr(pipes.stderr) })
	return nil
}

// pipes are our ends of a command's standard files, and those of its own that
// are to be closed once it runs.
type pipes struct {
	lifeline       *lifeline
	stdout, stderr *os.File
	theirs         []*os.File
}

func plumb(cmd *exec.Cmd) (pipes, error) {
	var files [6]*os.File
	for i := 0; i < len(files); i += 2 {
		var err error
		if files[i], files[i+1], err = os.Pipe(); err != nil {
			closeAll(files[:i]...)
			return pipes{}, err
		}
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = files[0], files[3], files[5]
	return pipes{
		lifeline: &lifeline{read: files[0], write: files[1]},
		stdout:   files[2], stderr: files[4], theirs: []*os.File{files[3], files[5]},
	}, nil
}

// live starts the process and stays with it until it is reaped, on one operating
// system thread: the kernel kills a child of ours when the thread that started it
// ends.
func (c *Process) live(cmd *exec.Cmd, ours pipes, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	born, err := c.fork(cmd, ours.lifeline)
	if err != nil {
		started <- err
		return
	}
	if w := newWatch(&c.spec, c.group, born.pid(), born.keeper()); w != nil {
		c.pumps.Go(func() { w.stand(c) })
	}
	started <- nil
	died, alone := born.reap(&c.mu, func() {
		c.signalGroupLocked()
		c.reaped = true
		// Who holds its output open is not waited for.
		_ = ours.stdout.SetReadDeadline(time.Now().Add(pipeTail))
		_ = ours.stderr.SetReadDeadline(time.Now().Add(pipeTail))
	})
	if !alone {
		c.killRest()
	}
	c.CloseStdin()
	c.death = c.judge(died)
	c.removeGroup()
	close(c.gone)
}

func (c *Process) fork(cmd *exec.Cmd, line *lifeline) (offspring, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.doomed {
		return nil, context.Canceled
	}
	if err := c.makeGroup(); err != nil {
		return nil, err
	}
	born, err := bear(cmd, &c.spec, c.group)
	if err != nil {
		c.removeGroup()
		return nil, program.ExplainStart(err)
	}
	if err := confine(born.pid(), &c.spec); err != nil {
		_ = syscall.Kill(-born.pid(), syscall.SIGKILL)
		_, _ = born.reap(&sync.Mutex{}, func() {})
		c.removeGroup()
		return nil, err
	}
	c.out.Log = c.out.Log.With("pid", born.pid())
	line.tie(born.pid())
	c.lifeline, c.born, c.pid, c.started = line, born, born.pid(), true
	return born, nil
}

// KillAt has the process killed at that time with all that it has forked, unless
// another time is named before; a zero time takes it back. It holds however this
// process fares until then, also while it is stopped. Without a keeper it does
// nothing. It may be called from any goroutine.
func (c *Process) KillAt(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.started && !c.reaped {
		c.born.killAt(at)
	}
}

// Await waits until the process is gone and its output read, but not longer
// than the patience. It returns at once for a process that was never started.
func (c *Process) Await(patience time.Duration) bool {
	c.mu.Lock()
	started := c.started
	c.mu.Unlock()
	if !started {
		_ = c.handshakeIn.Close()
		return true
	}
	select {
	case <-c.gone:
		c.pumps.Wait()
		return true
	case <-time.After(patience):
		return false
	}
}

// CloseStdin tells the process that nobody needs it any more.
func (c *Process) CloseStdin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lifeline != nil {
		c.lifeline.cut()
		c.lifeline = nil
	}
}

func (c *Process) readStderr(f *os.File) {
	defer func() { _ = f.Close() }()
	out := c.out.From("stderr")
	_, _ = io.Copy(out, struct{ io.Reader }{f})
	out.Flush()
}

func closeAll(files ...*os.File) {
	for _, file := range files {
		_ = file.Close()
	}
}

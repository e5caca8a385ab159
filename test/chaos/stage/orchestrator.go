//go:build linux

package stage

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-jobs/holdfast/test/loopback"
	"github.com/holdfast-jobs/holdfast/test/rig"
)

// glance is the pause between two looks at something that changes soon.
const glance = 20 * time.Millisecond

// answersWithin is how long an orchestrator may take to answer that it is ready, until it is
// asked again.
const answersWithin = 10 * time.Second

// Orchestrator is one orchestrator with a directory of its own. Its process may end and
// start many times.
type Orchestrator struct {
	rig.Client
	Name string
	Host Host
	// Dir has the log, and the plugins' files in plugins/.
	Dir string
	// Plugins name the plugins; none for an API alone.
	Plugins []string

	binary    string
	temporary string
	settings  []string
	log       *os.File

	mu      sync.Mutex
	process rig.Process // of the orchestrator itself
	guest   *exec.Cmd   // of the init of its host, or of the orchestrator
	ended   chan struct{}
	code    int
}

// New returns an orchestrator that is not started yet. The settings are key.path=value.
func New(ctx context.Context, name string, host Host, binary, dir, temporary, password string, settings ...string) (*Orchestrator, error) {
	address, err := loopback.FreeAddress(ctx)
	if err != nil {
		return nil, err
	}
	dir = filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Join(dir, "plugins"), 0o755); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	return &Orchestrator{
		Client: rig.Client{Address: address, Password: password}, Name: name, Host: host, Dir: dir, binary: binary, temporary: temporary, log: log,
		settings: append([]string{
			"server.address=" + address, "security.user=admin", "security.password=" + password, "worker.id=" + name,
		}, settings...),
	}, nil
}

// Set adds a setting that holds from the next start on.
func (o *Orchestrator) Set(setting string) { o.settings = append(o.settings, setting) }

// Start starts the process.
func (o *Orchestrator) Start() error {
	args := []string{o.binary, "serve"}
	for _, setting := range o.settings {
		args = append(args, "--set", setting)
	}
	attributes := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if o.Host.Isolated {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		args, attributes = append([]string{self, GuestCommand}, args...), isolation()
	}
	cmd := exec.Command(args[0], args[1:]...) //nolint:gosec,noctx // Close ends it
	// Sockets of this run must not be among those of others.
	cmd.Env = append(os.Environ(), "TMPDIR="+o.temporary)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = o.Dir, o.log, o.log, attributes
	started, ended := make(chan error, 1), make(chan struct{})
	go func() {
		runtime.LockOSThread() // the death signal is tied to the thread
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = cmd.Wait()
		o.mu.Lock()
		o.code = cmd.ProcessState.ExitCode()
		o.mu.Unlock()
		close(ended)
	}()
	if err := <-started; err != nil {
		return err
	}
	o.mu.Lock()
	o.guest, o.ended = cmd, ended
	o.mu.Unlock()
	process, err := o.find(cmd.Process.Pid, ended)
	o.mu.Lock()
	o.process = process
	o.mu.Unlock()
	return err
}

// find returns the process of the orchestrator: the child of a guest's init that runs its
// program, or the process that was started.
func (o *Orchestrator) find(pid int, ended chan struct{}) (rig.Process, error) {
	if !o.Host.Isolated {
		return rig.ProcessOf(pid)
	}
	for {
		if process, ok := childThatRuns(pid, o.binary); ok {
			return process, nil
		}
		select {
		case <-ended:
			return rig.Process{}, fmt.Errorf("%s ended at once", o.Name)
		case <-time.After(glance):
		}
	}
}

// childThatRuns is the child that runs the program. Go may clone another child for a moment,
// before it starts its first program.
func childThatRuns(parent int, binary string) (rig.Process, bool) {
	for _, child := range rig.Children(parent) {
		if args := child.Args(); len(args) > 0 && args[0] == binary {
			return child, true
		}
	}
	return rig.Process{}, false
}

// AwaitReady waits until the orchestrator answers that it is ready.
func (o *Orchestrator) AwaitReady(ctx context.Context) error {
	o.mu.Lock()
	ended := o.ended
	o.mu.Unlock()
	for {
		one, cancel := context.WithTimeout(ctx, answersWithin)
		err := o.Call(one, http.MethodGet, "/readyz", nil, http.StatusOK, nil)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ended:
			return fmt.Errorf("%s ended with %d", o.Name, o.Code())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w", o.Name, err)
		case <-time.After(glance):
		}
	}
}

// Process is the process of the orchestrator itself.
func (o *Orchestrator) Process() rig.Process { o.mu.Lock(); defer o.mu.Unlock(); return o.process }

// Init is the process id of everything on its host: all processes of this orchestrator
// descend from it. It is 0 before the first start.
func (o *Orchestrator) Init() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.guest == nil {
		return 0
	}
	return o.guest.Process.Pid
}

// Alive reports whether the orchestrator runs.
func (o *Orchestrator) Alive() bool { p := o.Process(); return p.PID != 0 && p.Alive() }

// Code is the exit code of the last process that has ended. Of one that was killed by a
// signal it is -1, or 128 and the signal's number.
func (o *Orchestrator) Code() int { o.mu.Lock(); defer o.mu.Unlock(); return o.code }

// Signal sends the orchestrator a signal.
func (o *Orchestrator) Signal(signal syscall.Signal) error {
	p := o.Process()
	if !p.Alive() {
		return errors.New(o.Name + " does not run")
	}
	return Send(p, signal)
}

// Keepers lists the processes that watch over those of the plugin; of all plugins for an
// empty name.
func (o *Orchestrator) Keepers(plugin string) []rig.Process {
	var found []rig.Process
	for _, p := range rig.Descendants(o.Init()) {
		if args := p.Args(); len(args) > 2 && args[1] == "plugin-keeper" && (plugin == "" || args[2] == plugin) {
			found = append(found, p)
		}
	}
	return found
}

// Processes lists the processes of the plugin.
func (o *Orchestrator) Processes(plugin string) []rig.Process {
	var found []rig.Process
	for _, keeper := range o.Keepers(plugin) {
		found = append(found, rig.Children(keeper.PID)...)
	}
	return found
}

// PluginFile is the file of the plugin, which may be replaced.
func (o *Orchestrator) PluginFile(plugin string) string {
	return filepath.Join(o.Dir, "plugins", plugin)
}

// Close ends the orchestrator and everything on its host: by SIGTERM first if the context
// leaves time for it.
func (o *Orchestrator) Close(ctx context.Context) {
	defer o.log.Close()
	o.mu.Lock()
	guest, ended := o.guest, o.ended
	o.mu.Unlock()
	if guest == nil {
		return
	}
	_ = o.Signal(syscall.SIGCONT)
	_ = o.Signal(syscall.SIGTERM)
	select {
	case <-ended:
		return
	case <-ctx.Done():
	}
	below := rig.Descendants(guest.Process.Pid)
	_ = guest.Process.Kill()
	for _, p := range below {
		if p.Alive() {
			_ = Send(p, syscall.SIGKILL)
		}
	}
	<-ended
}

// Package rig runs the real orchestrator for the demo and for end-to-end tests: it
// starts and ends the process, calls its API, and remembers all its descendants.
package rig

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-jobs/holdfast/test/loopback"
)

// glance is the pause between two looks at something that changes soon.
const glance = 10 * time.Millisecond

// declaredWithin bounds the wait for plugins after the start. Some never declare anything.
const declaredWithin = 30 * time.Second

// Orchestrator is one orchestrator process. Calls of the API may be concurrent; the other
// methods are for one goroutine at a time.
type Orchestrator struct {
	Client
	binary   string
	dir      string
	settings []string
	log      io.Writer

	cmd   *exec.Cmd
	ended chan error

	mu   sync.Mutex
	seen map[Process]string
}

// New returns an orchestrator that is not started yet. It will listen on a free port of
// the loopback, run in dir, and write its log to log. The settings are key.path=value, as
// for --set.
func New(ctx context.Context, binary, dir string, log io.Writer, settings ...string) (*Orchestrator, error) {
	if _, err := os.Stat(binary); err != nil {
		return nil, fmt.Errorf("%w; build it first, with: make build", err)
	}
	address, err := loopback.FreeAddress(ctx)
	if err != nil {
		return nil, err
	}
	password := rand.Text()
	return &Orchestrator{
		Client: Client{Address: address, Password: password},
		binary: binary, dir: dir, log: log,
		settings: append([]string{
			"server.address=" + address, "security.user=" + operator, "security.password=" + password,
		}, settings...),
		seen: make(map[Process]string),
	}, nil
}

// Start starts the process and returns when it is ready, with the time that took.
func (o *Orchestrator) Start(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	args := []string{"serve"}
	for _, setting := range o.settings {
		args = append(args, "--set", setting)
	}
	// Not bound to the context: ShutDown or Kill end it.
	o.cmd = exec.Command(o.binary, args...) //nolint:noctx // see above
	o.cmd.Dir = o.dir
	o.cmd.Stdout, o.cmd.Stderr = o.log, o.log
	o.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := o.cmd.Start(); err != nil {
		return 0, err
	}
	o.ended = make(chan error, 1)
	go func(cmd *exec.Cmd, ended chan<- error) { ended <- cmd.Wait() }(o.cmd, o.ended)
	for {
		if o.Call(ctx, http.MethodGet, "/readyz", nil, http.StatusOK, nil) == nil {
			took := time.Since(began)
			o.awaitPlugins(ctx)
			o.Look()
			return took, nil
		}
		select {
		case err := <-o.ended:
			o.cmd = nil
			return 0, fmt.Errorf("the orchestrator ended at once: %w", err)
		case <-ctx.Done():
			return 0, errors.New("the orchestrator did not become ready")
		case <-time.After(glance):
		}
	}
}

// awaitPlugins waits until no plugin is starting for the first time, and the job types of
// those that are up can be submitted: an orchestrator is ready even if its plugins are slow to
// declare them. It does not wait if it may not see the plugins.
func (o *Orchestrator) awaitPlugins(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, declaredWithin)
	defer cancel()
	for ctx.Err() == nil {
		var found struct{ Plugins []plugin }
		err := o.Call(ctx, http.MethodGet, "/debug/plugins", nil, http.StatusOK, &found)
		waits := func(p plugin) bool {
			return p.State == "starting" || p.State == "up" && !o.declared(ctx, p.JobTypes)
		}
		if err != nil || !slices.ContainsFunc(found.Plugins, waits) {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(glance):
		}
	}
}

// plugin is what GET /debug/plugins says of a plugin.
type plugin struct {
	State    string
	JobTypes []string
}

// declared reports whether jobs of all these types can be submitted.
func (o *Orchestrator) declared(ctx context.Context, types []string) bool {
	return !slices.ContainsFunc(types, func(jobType string) bool {
		return o.Call(ctx, http.MethodGet, "/job-types/"+url.PathEscape(jobType), nil, http.StatusOK, nil) != nil
	})
}

// Log is where the process writes its log.
func (o *Orchestrator) Log() io.Writer { return o.log }

// Running reports whether the process was started and has not been ended by a method.
func (o *Orchestrator) Running() bool { return o.cmd != nil }

// PID is the process's id. The process must be running.
func (o *Orchestrator) PID() int { return o.cmd.Process.Pid }

// Kill ends the process with SIGKILL.
func (o *Orchestrator) Kill() error {
	o.Look()
	if err := o.cmd.Process.Kill(); err != nil {
		return err
	}
	err := <-o.ended
	o.cmd = nil
	if killed := new(exec.ExitError); !errors.As(err, &killed) {
		return fmt.Errorf("the orchestrator had ended before it was killed: %w", err)
	}
	return nil
}

// Signal sends the process a signal.
func (o *Orchestrator) Signal(signal syscall.Signal) error { return o.cmd.Process.Signal(signal) }

// ShutDown ends the process with SIGTERM, and returns an error unless it exits with 0.
func (o *Orchestrator) ShutDown(ctx context.Context) error {
	o.Look()
	if err := o.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return o.Ended(ctx)
}

// Ended waits until the process has ended, and returns an error unless it exited with 0.
func (o *Orchestrator) Ended(ctx context.Context) error {
	select {
	case err := <-o.ended:
		o.cmd = nil
		return err
	case <-ctx.Done():
		return errors.New("the orchestrator did not end")
	}
}

// Look remembers the present descendants of the orchestrator.
func (o *Orchestrator) Look() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range Descendants(o.PID()) {
		o.seen[p] = p.Name()
	}
}

// Handlers lists the running descendants of the orchestrator with the name.
func (o *Orchestrator) Handlers(name string) []Process {
	var found []Process
	for _, p := range Descendants(o.PID()) {
		if p.Name() == name {
			found = append(found, p)
		}
	}
	return found
}

// NoneLeft waits until all processes that Look has seen are gone, and returns their
// number, or an error that names those that remain.
func (o *Orchestrator) NoneLeft(ctx context.Context) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		left := ""
		for p, name := range o.seen {
			if p.Alive() {
				left += fmt.Sprintf(" %s (%d)", name, p.PID)
			}
		}
		if left == "" {
			return len(o.seen), nil
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("processes remain:%s", left)
		case <-time.After(glance):
		}
	}
}

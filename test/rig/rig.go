// Package rig runs the real orchestrator for demonstrations and end-to-end
// tests: it starts and ends the process, talks to its API, and keeps an eye
// on every process that descends from it.
package rig

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// glance is the pause between two looks at something that will change soon.
const glance = 10 * time.Millisecond

// Orchestrator is one orchestrator process. Its methods are for one goroutine
// at a time, but for the API calls, which are for any.
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

// New describes an orchestrator on a free port of the loopback; the settings
// are key.path=value as for --set. Its log is copied to log, and it runs in
// dir. Nothing is started.
func New(ctx context.Context, binary, dir string, log io.Writer, settings ...string) (*Orchestrator, error) {
	if _, err := os.Stat(binary); err != nil {
		return nil, fmt.Errorf("%w; build it first, with: make build", err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
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

// Start launches the process and returns when it is ready, with how long that
// took.
func (o *Orchestrator) Start(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	args := []string{"serve"}
	for _, setting := range o.settings {
		args = append(args, "--set", setting)
	}
	// Not bound to the context: it is to be ended in good order, or with a
	// kill of its own.
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

// Log is what the process's log is copied to.
func (o *Orchestrator) Log() io.Writer { return o.log }

// Running reports whether the process was started and not ended by us.
func (o *Orchestrator) Running() bool { return o.cmd != nil }

// PID is the process's id while it runs.
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

// ShutDown ends the process with SIGTERM, in good order, and returns an error
// unless it exits 0.
func (o *Orchestrator) ShutDown(ctx context.Context) error {
	o.Look()
	if err := o.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return o.Ended(ctx)
}

// Ended waits until the process has ended and returns an error unless it
// exited 0.
func (o *Orchestrator) Ended(ctx context.Context) error {
	select {
	case err := <-o.ended:
		o.cmd = nil
		return err
	case <-ctx.Done():
		return errors.New("the orchestrator did not end")
	}
}

// Look remembers every process that descends from the orchestrator now.
func (o *Orchestrator) Look() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range Descendants(o.PID()) {
		o.seen[p] = p.Name()
	}
}

// Handlers lists the running processes that descend from the orchestrator and
// have the name.
func (o *Orchestrator) Handlers(name string) []Process {
	var found []Process
	for _, p := range Descendants(o.PID()) {
		if p.Name() == name {
			found = append(found, p)
		}
	}
	return found
}

// NoneLeft waits until every process that Look has ever seen is gone and
// returns how many that were, or an error that names those that stay.
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
			return 0, fmt.Errorf("processes were left behind:%s", left)
		case <-time.After(glance):
		}
	}
}

// Package rig runs the real orchestrator for the demo and for end-to-end tests: it
// starts and ends its process or processes, calls its API, and remembers all their descendants.
package rig

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// glance is the pause between two looks at something that changes soon.
const glance = 10 * time.Millisecond

// Orchestrator is one orchestrator process, or three that have a role each. Calls of the API may
// be concurrent; the other methods are for one goroutine at a time.
type Orchestrator struct {
	// Client calls the process that serves the API.
	Client
	servers []*server // The first serves the API.

	mu   sync.Mutex
	seen map[Process]string
}

// New returns an orchestrator that is not started yet. It will listen on a free port of
// the loopback, run in dir, and write its log to log. The settings are key.path=value, as
// for --set.
func New(ctx context.Context, binary, dir string, log io.Writer, settings ...string) (*Orchestrator, error) {
	return newOrchestrator(ctx, []*server{{name: "the orchestrator", binary: binary, dir: dir, log: log, settings: settings}})
}

func newOrchestrator(ctx context.Context, servers []*server) (*Orchestrator, error) {
	password := rand.Text()
	for _, s := range servers {
		if _, err := os.Stat(s.binary); err != nil {
			return nil, fmt.Errorf("%w; build it first, with: make build", err)
		}
		if err := s.settle(ctx, password); err != nil {
			return nil, err
		}
	}
	return &Orchestrator{Client: servers[0].Client, servers: servers, seen: make(map[Process]string)}, nil
}

// Start starts the processes and returns when all are ready, with the time that took.
func (o *Orchestrator) Start(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	for _, s := range o.servers {
		if err := s.start(); err != nil {
			return 0, err
		}
	}
	for _, s := range o.servers {
		if err := s.awaitReady(ctx); err != nil {
			return 0, err
		}
	}
	took := time.Since(began)
	o.awaitPlugins(ctx)
	o.Look()
	return took, nil
}

// Servers are clients of all processes, first of the one that serves the API. The others answer
// /healthz, /readyz and /metrics.
func (o *Orchestrator) Servers() []Client {
	var all []Client
	for _, s := range o.servers {
		all = append(all, s.Client)
	}
	return all
}

// Logs are where the processes write their logs, in the order of Servers.
func (o *Orchestrator) Logs() []io.Writer {
	var all []io.Writer
	for _, s := range o.servers {
		all = append(all, s.log)
	}
	return all
}

// Running reports whether a process was started and has not been ended by a method.
func (o *Orchestrator) Running() bool { return len(o.running()) > 0 }

func (o *Orchestrator) running() []*server {
	var running []*server
	for _, s := range o.servers {
		if s.cmd != nil {
			running = append(running, s)
		}
	}
	return running
}

// PID is the id of the process that serves the API, which must be running.
func (o *Orchestrator) PID() int { return o.servers[0].pid() }

// Kill ends the processes with SIGKILL, all at once.
func (o *Orchestrator) Kill() error {
	o.Look()
	running := o.running()
	for _, s := range running {
		if err := s.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
	}
	var ends []error
	for _, s := range running {
		ends = append(ends, s.awaitKilled())
	}
	return errors.Join(ends...)
}

// Signal sends the processes a signal. It is no error that some of them have ended.
func (o *Orchestrator) Signal(signal syscall.Signal) error {
	running := o.running()
	done := 0
	for _, s := range running {
		err := s.cmd.Process.Signal(signal)
		switch {
		case errors.Is(err, os.ErrProcessDone):
			done++
		case err != nil:
			return err
		}
	}
	if done == len(running) {
		return os.ErrProcessDone
	}
	return nil
}

// ShutDown ends the processes with SIGTERM, and returns an error unless all exit with 0.
func (o *Orchestrator) ShutDown(ctx context.Context) error {
	o.Look()
	if err := o.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return o.Ended(ctx)
}

// Ended waits until the processes have ended, and returns an error unless all exited with 0.
func (o *Orchestrator) Ended(ctx context.Context) error {
	var ends []error
	for _, s := range o.running() {
		ends = append(ends, s.awaitEnd(ctx))
	}
	return errors.Join(ends...)
}

// descendants are those of the processes that run now.
func (o *Orchestrator) descendants() []Process {
	var all []Process
	for _, s := range o.running() {
		all = append(all, Descendants(s.pid())...)
	}
	return all
}

// Look remembers the present descendants of the orchestrator.
func (o *Orchestrator) Look() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range o.descendants() {
		o.seen[p] = p.Name()
	}
}

// Handlers lists the running descendants of the orchestrator with the name.
func (o *Orchestrator) Handlers(name string) []Process {
	var found []Process
	for _, p := range o.descendants() {
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

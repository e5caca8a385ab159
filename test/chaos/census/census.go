//go:build linux

// Package census knows every process of a chaos run: it looks for new ones all the
// time, watches each until it ends, and counts what they use.
package census

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
	"github.com/holdfast-jobs/holdfast/test/chaos/stage"
	"github.com/holdfast-jobs/holdfast/test/rig"
)

// every is the pause between two looks. A process that lives for a shorter time may not be
// seen.
const every = 150 * time.Millisecond

// Census is the list of processes.
type Census struct {
	now           func() history.Nanos
	orchestrators []*stage.Orchestrator
	// servers returns the postmasters by name.
	servers func() map[string]int

	watching sync.WaitGroup
	mu       sync.Mutex
	seen     map[rig.Process]*history.Process
	wanted   map[rig.Process]bool
}

// New returns a census that nobody conducts yet.
func New(now func() history.Nanos, orchestrators []*stage.Orchestrator, servers func() map[string]int) *Census {
	return &Census{
		now: now, orchestrators: orchestrators, servers: servers,
		seen: make(map[rig.Process]*history.Process), wanted: make(map[rig.Process]bool),
	}
}

// Want says that the run is about to end the process.
func (c *Census) Want(p rig.Process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wanted[p] = true
}

// Conduct looks for processes until ctx ends.
func (c *Census) Conduct(ctx context.Context) {
	for ctx.Err() == nil {
		c.look(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(every):
		}
	}
}

func (c *Census) look(ctx context.Context) {
	for _, o := range c.orchestrators {
		if o.Init() == 0 {
			continue
		}
		c.add(ctx, o.Process(), history.Orchestrator, o.Name, o.Host.Name, o)
		for _, keeper := range o.Keepers("") {
			args := keeper.Args()
			if len(args) < 3 {
				continue
			}
			c.add(ctx, keeper, history.Other, "keeper "+args[2], o.Host.Name, o)
			for _, p := range rig.Children(keeper.PID) {
				c.add(ctx, p, history.Plugin, args[2], o.Host.Name, o)
			}
		}
	}
	for name, pid := range c.servers() {
		if p, err := rig.ProcessOf(pid); err == nil {
			c.add(ctx, p, history.Database, name, "", nil)
		}
	}
}

// add begins to watch a process that is new.
func (c *Census) add(ctx context.Context, p rig.Process, kind history.ProcessKind, name, host string, o *stage.Orchestrator) {
	c.mu.Lock()
	_, known := c.seen[p]
	c.mu.Unlock()
	if known || p.PID == 0 {
		return
	}
	handle, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		return
	}
	if !p.Alive() {
		_ = unix.Close(handle)
		return
	}
	entry := &history.Process{Kind: kind, Name: name, Host: host, PID: innerPID(p.PID), PIDStarted: p.Started(), Started: c.now()}
	c.mu.Lock()
	c.seen[p] = entry
	c.mu.Unlock()
	c.watching.Go(func() {
		defer unix.Close(handle) //nolint:errcheck // nothing was written
		c.watch(ctx, handle, p, entry, o)
	})
}

// watch waits until the process ends.
func (c *Census) watch(ctx context.Context, handle int, p rig.Process, entry *history.Process, o *stage.Orchestrator) {
	for ctx.Err() == nil {
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}, 500) //nolint:gosec // a descriptor
		if err != nil || ready == 0 {
			continue
		}
		ended := c.now()
		code := -1
		if o != nil && entry.Kind == history.Orchestrator {
			time.Sleep(every) // until it is collected
			code = o.Code()
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		entry.Ended, entry.Exit, entry.Wanted = ended, code, c.wanted[p]
		return
	}
}

// List lists all processes, after Conduct has ended.
func (c *Census) List() []history.Process {
	c.watching.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]history.Process, 0, len(c.seen))
	for p, entry := range c.seen {
		if entry.Ended == 0 && !p.Alive() {
			entry.Ended, entry.Exit, entry.Wanted = c.now(), -1, true
		}
		all = append(all, *entry)
	}
	return all
}

// Left names the processes that still live.
func (c *Census) Left() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var left []string
	for p, entry := range c.seen {
		if p.Alive() {
			left = append(left, fmt.Sprintf("%s %s (%d)", entry.Kind, entry.Name, p.PID))
		}
	}
	return left
}

// innerPID is the id that the process itself sees.
func innerPID(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return pid
	}
	for line := range strings.Lines(string(text)) {
		if ids, ok := strings.CutPrefix(line, "NSpid:"); ok {
			fields := strings.Fields(ids)
			if inner, err := strconv.Atoi(fields[len(fields)-1]); err == nil {
				return inner
			}
		}
	}
	return pid
}

package host

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/binary"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/message"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// fleet is one plugin: the generation that serves, at most one candidate, and those
// that drain. Only its conductor changes which is which.
type fleet struct {
	host     *Host
	name     string
	settings Settings
	log      *slog.Logger
	orders   orders

	// quitting ends when the plugin is removed, or the host closes.
	quitting context.Context
	quit     context.CancelFunc
	// generations counts the generations that drain.
	generations sync.WaitGroup

	mu sync.Mutex
	// config is the present configuration. Each generation keeps the one that it was
	// made with.
	config Config
	deploy deploy
	// current serves, or served until the plugin was disabled. It is never nil.
	current *generation
	// next is the candidate; nil for none.
	next *generation
	// old are the generations that drain.
	old []*generation
	// manifest is that of the version that serves, or that served last.
	manifest *message.Manifest
	// share is the candidate's part of the attempts. The candidate gets the next
	// attempt when due is at least 1. Both apply in stateCanary only.
	share, due float64
	// stopSwap ends the swap under way; nil for none.
	stopSwap  context.CancelCauseFunc
	lastSwap  *v1.PluginSwap
	restarts  int
	crashes   int
	lastError string
	// plainError and plainReason are lastError, and the reason of lastSwap, without what a
	// process has printed.
	plainError, plainReason string
	// unusable says why the file cannot serve. skipReason says why a usable file does
	// not serve.
	unusable, skipReason string
}

// newFleet pins the binary. Its error says why the file cannot be read.
func newFleet(h *Host, settings Settings, config Config) (*fleet, error) {
	file, err := binary.Pin(config.Path)
	if err != nil {
		return nil, err
	}
	f := &fleet{
		host: h, name: config.Name, settings: settings, config: config, deploy: newDeploy(),
		log:    settings.Log.With("plugin", config.Name),
		orders: orders{arrived: loop.NewSignal()},
	}
	f.quitting, f.quit = context.WithCancel(h.draining)
	f.current = f.newGeneration(config, file, serving)
	return f, nil
}

// reserve takes a slot for an attempt of the type in the least loaded process; nil if
// none is free. A candidate on trial gets its share.
func (f *fleet) reserve(jobType string) *instance {
	f.mu.Lock()
	defer f.mu.Unlock()
	var chosen *instance
	if f.deploy.state == stateCanary && f.due >= 1 && slices.Contains(f.next.manifest.Types, jobType) {
		if chosen = f.next.leastLoaded(jobType); chosen != nil {
			f.due--
		}
	}
	if chosen == nil && f.current.role == serving {
		chosen = f.current.leastLoaded(jobType)
	}
	if chosen != nil {
		chosen.take(jobType, 1)
		f.due = min(f.due+f.share, 1)
	}
	return chosen
}

// release frees a slot that was reserved and not used.
func (f *fleet) release(i *instance, jobType string) {
	f.mu.Lock()
	i.take(jobType, -1)
	f.mu.Unlock()
	f.host.changed.Raise()
}

func (f *fleet) configured() Config {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.config
}

// pool returns the room of the serving version, for the job types that the current
// configuration assigns to the plugin. It returns false if no version serves, or if the
// manifest is not known yet. Claimers see one pool, whatever share of it a candidate
// gets.
func (f *fleet) pool() (job.Pool, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.current
	if g.role != serving || g.manifest == nil {
		return job.Pool{}, false
	}
	types := g.manifest.Without(f.config.skips).Types
	if len(types) == 0 {
		return job.Pool{}, false
	}
	pool := job.Pool{
		Plugin: f.name, Version: g.manifest.Version, Types: types,
		Down: len(g.live) == 0, FreeIsolated: g.freeIsolated(),
	}
	for _, i := range g.live {
		i.addRoom(&pool)
	}
	for jobType, limit := range typeLimits(g.manifest) {
		if pool.RoomIsolated == nil {
			pool.RoomIsolated = make(map[string]int)
		}
		pool.RoomIsolated[jobType] = g.freeIsolatedOf(jobType, limit)
	}
	return pool, true
}

// declared returns the manifest of the version that serves, or served last, without the
// job types that the configuration has since given to other plugins. It returns nil
// until the first process is up.
func (f *fleet) declared() *message.Manifest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.declaredLocked()
}

func (f *fleet) declaredLocked() *message.Manifest {
	if f.manifest == nil {
		return nil
	}
	return f.manifest.Without(f.config.skips)
}

// types lists the job types that no other plugin may take: those of the serving version
// and of the candidate. The fleet is locked.
func (f *fleet) types() []string {
	var types []string
	if m := f.declaredLocked(); m != nil {
		types = append(types, m.Types...)
	}
	if f.next != nil && f.next.manifest != nil {
		types = append(types, f.next.manifest.Types...)
	}
	return types
}

// retire gives a generation time to finish its attempts, and then releases its
// resources. The fleet is locked.
func (f *fleet) retire(g *generation, as role) {
	g.role = as
	f.old = append(f.old, g)
	g.drain()
	f.generations.Go(func() {
		defer g.kill()
		if f.host.draining.Err() == nil { // Otherwise Close sets the time limit.
			patience, cancel := context.WithTimeout(context.Background(), f.settings.DrainTimeout)
			defer cancel()
			defer context.AfterFunc(patience, g.kill)()
		}
		g.running.Wait()
		g.binary.Close()
		f.mu.Lock()
		f.old = slices.DeleteFunc(f.old, func(other *generation) bool { return other == g })
		f.mu.Unlock()
		g.log.Info("plugin version stopped")
		f.host.changed.Raise()
	})
}

func (f *fleet) status() v1.Plugin {
	s, live := f.describe()
	for _, i := range live {
		if use, ok := i.Use(); ok {
			s.Use = append(s.Use, use)
		}
	}
	return s
}

// describe returns the status without what the processes use, and those processes: to measure
// them takes too long for the lock.
func (f *fleet) describe() (v1.Plugin, []*instance) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.current
	s := v1.Plugin{
		Name: f.name, Path: f.config.Path, PluginVersion: g.version(), State: f.stateLocked(),
		JobTypes: []string{}, PIDs: g.pids(), Processes: g.config.Processes, Isolated: g.ramp.running, Limits: g.limits,
		Restarts: f.restarts, Crashes: f.crashes, LastError: f.lastError,
		SkipReason: cmp.Or(f.unusable, f.skipReason), Breaker: g.breaker.describe(),
	}
	if m := f.declaredLocked(); m != nil {
		s.JobTypes, s.SkippedJobTypes = append(s.JobTypes, m.Types...), m.SkippedTypes
	}
	s.Running, s.Free = g.slots()
	if g.role != serving || f.host.draining.Err() != nil {
		s.Free = 0
	}
	for _, old := range f.old {
		if old != g {
			inFlight, _ := old.slots()
			s.Draining += inFlight + old.ramp.running
		}
	}
	if f.next != nil {
		s.Candidate = f.candidateLocked()
	}
	if f.lastSwap != nil {
		last := *f.lastSwap
		s.LastSwap = &last
	}
	return s, slices.Clone(g.live)
}

// report is the status without what processes have printed.
func (f *fleet) report() v1.Plugin {
	s := f.status()
	f.mu.Lock()
	defer f.mu.Unlock()
	s.LastError = f.plainError
	if s.LastSwap != nil {
		s.LastSwap.Reason = f.plainReason
	}
	return s
}

func (f *fleet) stateLocked() job.PluginState {
	switch {
	case f.deploy.isDisabled():
		return job.PluginDisabled
	case len(f.current.live) > 0:
		return job.PluginUp
	case f.current.breaker.broken():
		return job.PluginBroken
	}
	return job.PluginStarting
}

func (f *fleet) candidateLocked() *v1.PluginCandidate {
	c := &v1.PluginCandidate{PluginVersion: f.next.version(), State: job.CandidateStarting, PIDs: f.next.pids()}
	if f.deploy.state == stateCanary {
		c.State, c.PluginTrial = job.CandidateCanary, f.compareLocked(f.next, false).summary()
	}
	c.Running, _ = f.next.slots()
	return c
}

package host

import (
	"cmp"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Status describes every configured plugin, in the order of configuration.
func (h *Host) Status() []job.PluginStatus {
	fleets := h.roster.Load().fleets
	all := make([]job.PluginStatus, 0, len(fleets))
	for _, f := range fleets {
		all = append(all, f.status())
	}
	return all
}

func (f *fleet) status() job.PluginStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.current
	s := job.PluginStatus{
		Name: f.name, Path: f.config.Path, PluginVersion: g.version(), State: f.stateLocked(),
		PIDs: g.pids(), Processes: g.config.Processes, Isolated: g.ramp.running, Limits: g.limits,
		Restarts: f.restarts, Crashes: f.crashes, LastError: f.lastError,
		SkipReason: cmp.Or(f.unusable, f.leftOut),
	}
	if m := f.manifestLocked(); m != nil {
		s.Types, s.SkippedTypes = m.Types, m.LeftOut
	}
	s.InFlight, s.Free = g.room()
	if g.role != serving || f.host.draining.Err() != nil {
		s.Free = 0
	}
	for _, old := range f.old {
		if old != g {
			inFlight, _ := old.room()
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
	return s
}

func (f *fleet) stateLocked() job.PluginState {
	switch {
	case f.disabled:
		return job.PluginDisabled
	case len(f.current.live) > 0:
		return job.PluginUp
	case f.current.breaker.broken():
		return job.PluginBroken
	}
	return job.PluginStarting
}

func (f *fleet) candidateLocked() *job.PluginCandidate {
	c := &job.PluginCandidate{
		PluginVersion: f.next.version(), State: job.CandidateStarting, PIDs: f.next.pids(),
	}
	if f.onTrial {
		c.State, c.Trial = job.CandidateOnTrial, f.compareLocked(f.next, false).shown()
	}
	c.InFlight, _ = f.next.room()
	return c
}

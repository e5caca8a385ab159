package host

// State is how a plugin is, for operators.
type State string

// The states of a plugin.
const (
	// Starting: no process is up yet, or again.
	Starting State = "starting"
	// Up: at least one process is.
	Up State = "up"
	// Broken: no process is up, and the last launches have failed in a row or
	// were refused. It is still launched now and then.
	Broken State = "broken"
)

// PluginStatus describes a plugin for operators.
type PluginStatus struct {
	Name string
	// Version is the one last declared; empty before the plugin was ever up.
	Version string
	State   State
	// PIDs are those of the processes that are up.
	PIDs []int
	// Processes is how many are to be up; PIDs are those that are.
	Processes int
	// Restarts counts the launches that failed and the processes that ended.
	Restarts int
	// Crashes counts the processes among them that were up and neither left
	// nor were killed because an attempt had to stop.
	Crashes int
	// LastError is why the last of them did; empty when none has.
	LastError string
	// InFlight is how many attempts its processes have, Free how many more
	// they can take.
	InFlight int
	Free     int
	// Alone is how many attempts have, or wait for, a process of their own.
	// PIDs and InFlight leave them out.
	Alone int
	// Limits says of each limit that is configured how it is enforced on this
	// machine.
	Limits []Enforcement
}

// Status describes every configured plugin, in the order of configuration.
func (h *Host) Status() []PluginStatus {
	all := make([]PluginStatus, 0, len(h.fleets))
	for _, f := range h.fleets {
		all = append(all, f.status())
	}
	return all
}

func (f *fleet) status() PluginStatus {
	broken := f.breaker.broken()
	f.mu.Lock()
	defer f.mu.Unlock()
	s := PluginStatus{
		Name: f.config.Name, State: Starting, Processes: f.config.Processes,
		Restarts: f.restarts, Crashes: f.crashes, LastError: f.lastError,
		Alone: f.alone, Limits: f.limits,
	}
	if f.manifest != nil {
		s.Version = f.manifest.version
	}
	for _, p := range f.live {
		s.PIDs = append(s.PIDs, p.child.PID())
		s.InFlight += p.inFlight
		if f.host.draining.Err() == nil {
			s.Free += p.capacity - p.inFlight
		}
	}
	switch {
	case len(f.live) > 0:
		s.State = Up
	case broken:
		s.State = Broken
	}
	return s
}

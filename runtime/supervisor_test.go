package runtime_test

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// script is a handler: what it does with one attempt, and how that ends.
type script func(*run) job.Outcome

// supervisor is one whose handlers are scripts in this process. It keeps every
// run it ever started.
type supervisor struct {
	changed chan struct{}
	all     sync.WaitGroup

	mu      sync.Mutex
	plugins []*handlers
	runs    []*run
	refused int // how many more starts to refuse
	asked   int // how often for its pools
}

// handlers are the scripts of one plugin.
type handlers struct {
	name  string
	slots int
	plays map[string]script
	// bounds are of types of which there may be only so many at once.
	bounds map[string]int
	// processes is how many attempts may run alone at once.
	processes int
	// down is while nothing else runs.
	down bool

	busy, mostBusy   int
	alone, mostAlone int
	// launching leaves it to the scripts to say that an attempt that is alone
	// has begun.
	launching bool
	busyOf    map[string]int
	// refusedOf counts the starts that were refused because of a bound.
	refusedOf int
}

// supervise returns a supervisor of the plugins. Whatever still runs at the
// end of the test is killed.
func supervise(t testing.TB, plugins ...*handlers) *supervisor {
	t.Helper()
	s := &supervisor{changed: make(chan struct{}, 1), plugins: plugins}
	t.Cleanup(func() {
		for _, r := range s.started() {
			r.Kill()
		}
		s.all.Wait()
	})
	return s
}

// playing is a plugin of so many slots that plays one script for every type.
func playing(name string, slots int, play script, types ...string) *handlers {
	h := &handlers{name: name, slots: slots, processes: 1, plays: make(map[string]script)}
	for _, jobType := range types {
		h.plays[jobType] = play
	}
	return h
}

func (s *supervisor) Pools() []job.Pool {
	s.mu.Lock()
	defer s.mu.Unlock()
	pools := make([]job.Pool, len(s.plugins))
	s.asked++
	for i, h := range s.plugins {
		if h.down {
			pools[i] = job.Pool{Plugin: h.name, Version: "v1", Types: h.types(), Down: true, FreeIsolated: h.processes - h.alone}
			continue
		}
		pools[i] = job.Pool{Plugin: h.name, Version: "v1", Types: h.types(), Free: h.slots - h.busy, Slots: h.slots, FreeIsolated: h.processes - h.alone}
		for jobType, most := range h.bounds {
			if pools[i].Room == nil {
				pools[i].Room = make(map[string]int)
			}
			pools[i].Room[jobType] = min(most-h.busyOf[jobType], h.slots-h.busy)
		}
	}
	return pools
}

func (s *supervisor) Types() []job.TypeSpec {
	s.mu.Lock()
	defer s.mu.Unlock()
	var specs []job.TypeSpec
	for _, h := range s.plugins {
		for _, jobType := range h.types() {
			specs = append(specs, job.TypeSpec{Type: jobType, Plugin: h.name, Version: "v1"})
		}
	}
	return specs
}

func (h *handlers) types() []string {
	types := make([]string, 0, len(h.plays))
	for jobType := range h.plays {
		types = append(types, jobType)
	}
	slices.Sort(types)
	return types
}

func (s *supervisor) Changed() <-chan struct{} { return s.changed }

func (s *supervisor) Start(plugin string, a job.Assignment, reporter job.Reporter) (job.Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused > 0 {
		s.refused--
		return nil, errors.New("the plugin has just gone")
	}
	at := slices.IndexFunc(s.plugins, func(h *handlers) bool { return h.name == plugin })
	if at < 0 {
		return nil, errors.New("the plugin was removed after Pools was called")
	}
	h := s.plugins[at]
	release, err := h.take(a)
	if err != nil {
		return nil, err
	}
	r := &run{Assignment: a, Reporter: reporter, stopped: make(chan struct{}), killed: make(chan struct{})}
	s.runs = append(s.runs, r)
	s.all.Go(func() {
		if a.Isolated && !h.launching {
			reporter.Began()
		}
		outcome := h.plays[a.Type](r)
		s.mu.Lock()
		release()
		s.mu.Unlock()
		reporter.Finished(r.end(outcome))
		s.signal()
	})
	return r, nil
}

// take takes a slot for the attempt. It is called with the mutex held, and so is
// what it returns.
func (h *handlers) take(a job.Assignment) (release func(), err error) {
	if a.Isolated {
		if h.alone >= h.processes {
			return nil, errors.New("no process")
		}
		h.alone++
		h.mostAlone = max(h.mostAlone, h.alone)
		return func() { h.alone-- }, nil
	}
	if h.down || h.busy >= h.slots {
		return nil, errors.New("no slot")
	}
	if most := h.bounds[a.Type]; most > 0 && h.busyOf[a.Type] >= most {
		h.refusedOf++
		return nil, errors.New("no slot for the type")
	}
	if h.busyOf == nil {
		h.busyOf = make(map[string]int)
	}
	h.busyOf[a.Type]++
	h.busy++
	h.mostBusy = max(h.mostBusy, h.busy)
	return func() { h.busy--; h.busyOf[a.Type]-- }, nil
}

// turn takes the plugins down, or up again, and returns when the worker has seen it.
func (s *supervisor) turn(t testing.TB, down bool) {
	t.Helper()
	s.mu.Lock()
	for _, h := range s.plugins {
		h.down = down
	}
	asked := s.asked
	s.mu.Unlock()
	s.signal()
	await(t, func() bool { // a round that has begun, and one after it
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.asked < asked+4 {
			s.signal()
		}
		return s.asked >= asked+4
	}, "the worker has looked at its pools")
}

func (s *supervisor) signal() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// started returns every run so far, in the order they were started.
func (s *supervisor) started() []*run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.runs)
}

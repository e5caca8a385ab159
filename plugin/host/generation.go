package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/binary"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/message"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/process"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/trial"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// role is what a generation is in its fleet.
type role int

const (
	// candidate: it is to serve if it proves itself.
	candidate role = iota
	// serving: it takes attempts.
	serving
	// retired: it has served, and finishes what it has.
	retired
	// rejected: it was a candidate, and finishes what it has.
	rejected
)

// generation is one version of a plugin under one configuration: its binary, which
// stays the same whatever happens to the file, and its processes.
type generation struct {
	fleet    *fleet
	config   Config
	settings Settings
	binary   *binary.File
	log      *slog.Logger
	breaker  *breaker
	// isolatedBreaker delays launches for isolated attempts. Their failures do not
	// count against the processes that are up.
	isolatedBreaker *breaker

	// draining ends when the generation has to finish, killing when its time for
	// that is over.
	draining context.Context
	drain    context.CancelFunc
	killing  context.Context
	kill     context.CancelFunc
	// running counts the goroutines that keep processes up, or run isolated attempts.
	running sync.WaitGroup
	// limits says how the configured limits are enforced.
	limits []job.Enforcement
	// news wakes a swap after any change.
	news chan struct{}

	// The fleet guards what follows.

	role     role
	live     []*instance
	manifest *message.Manifest
	ramp     ramp
	// fault is why a candidate cannot serve; nil while nothing speaks against it.
	fault error
	// excused says that one death during its trial was excused. The next one is not.
	excused bool
	// promoted says that it serves because of a swap.
	promoted bool
	// trial counts the attempts since the trial began, lifetime all of them.
	trial, lifetime trial.Tally
	// result is how its trial ended.
	result comparison
	// durations are those of the attempts that succeeded.
	durations trial.Durations
}

// newGeneration takes over the caller's hold on the file.
func (f *fleet) newGeneration(config Config, file *binary.File, as role) *generation {
	g := &generation{
		fleet: f, config: config, settings: f.settings, binary: file, role: as,
		log:     f.log.With("digest", file.Digest[:12]),
		breaker: newBreaker(f.settings.Backoff), isolatedBreaker: newBreaker(f.settings.Backoff),
		news: make(chan struct{}, 1), ramp: newRamp(),
	}
	// All versions of a plugin have the job types of the present configuration.
	g.config.Types, g.config.elsewhere = f.config.Types, f.config.elsewhere
	g.draining, g.drain = context.WithCancel(f.quitting)
	g.killing, g.kill = context.WithCancel(f.host.killing)
	if g.limits = g.enforced(); len(g.limits) > 0 {
		g.log.Info("limits of each process", "enforced", describe(g.limits))
	}
	return g
}

// start begins to launch its processes.
func (g *generation) start() {
	for range g.config.Processes {
		g.running.Go(g.keepOneUp)
	}
}

// keepOneUp launches and serves one process after another until the generation
// drains.
func (g *generation) keepOneUp() {
	for g.breaker.admit(g.draining) == nil {
		i, err := g.launch(g.draining, false)
		if err != nil {
			g.launchFailed(g.breaker, err)
			g.breaker.release()
			continue
		}
		g.add(i)
		g.breaker.release()
		g.ended(i, i.Serve())
	}
}

// LaunchFailed is the log message of a launch that failed, for callers that show it
// in another way.
const LaunchFailed = "plugin did not come up"

func (g *generation) launchFailed(b *breaker, err error) {
	if g.draining.Err() != nil {
		return
	}
	if process.IsRefusal(err) {
		b.refuse()
	} else {
		b.fail()
	}
	g.log.Warn(LaunchFailed, "error", err, "broken", b.broken())
	g.recordFailure(err, true)
}

func (g *generation) ended(i *instance, cause error) {
	up := time.Since(i.UpSince)
	log := g.log.With("pid", i.PID(), "up", up)
	if cause == nil || errors.Is(cause, process.ErrClosing) {
		log.Info("plugin process stopped")
		return
	}
	if up >= g.settings.Backoff.StableAfter {
		g.breaker.reset()
	}
	cause = fmt.Errorf("pid %d: %w", i.PID(), cause)
	if errors.Is(cause, process.ErrKilled) {
		g.breaker.pause()
	} else {
		g.breaker.fail()
		g.countCrash()
	}
	log.Warn("plugin process ended", "error", cause, "broken", g.breaker.broken())
	g.recordFailure(cause, false)
}

// hasServed reports whether its failures are those of the plugin. The fleet is
// locked.
func (g *generation) hasServed() bool { return g.role == serving || g.role == retired }

func (g *generation) countCrash() {
	g.fleet.mu.Lock()
	defer g.fleet.mu.Unlock()
	if g.hasServed() {
		g.fleet.crashes++
	}
}

// recordFailure records why a launch failed or a process ended. A failed launch
// speaks against a candidate; what a death means, Lost has decided.
func (g *generation) recordFailure(err error, launch bool) {
	f := g.fleet
	f.mu.Lock()
	switch {
	case g.hasServed():
		f.restarts++
		f.lastError = err.Error()
	case g.fault == nil && launch:
		g.fault = err
	}
	failing := g.keepsFailing()
	f.mu.Unlock()
	g.signal()
	if failing {
		f.order((*conductor).rollBack)
	}
}

// keepsFailing reports whether a serving version does not stay up. A single process
// that is up is enough. The fleet is locked.
func (g *generation) keepsFailing() bool {
	return g.role == serving && len(g.live) == 0 && g.breaker.broken()
}

func (g *generation) add(i *instance) {
	g.fleet.mu.Lock()
	g.live = append(g.live, i)
	g.fleet.mu.Unlock()
	g.log.Info("plugin process up", "pid", i.PID(), "plugin_version", i.Manifest.Version, "concurrency", i.capacity)
	g.signal()
}

func (g *generation) signal() {
	select {
	case g.news <- struct{}{}:
	default:
	}
	g.fleet.host.signal()
}

// leastLoaded is the process with room for the type that has the fewest attempts;
// nil for none. The fleet is locked.
func (g *generation) leastLoaded(jobType string) *instance {
	var least *instance
	for _, i := range g.live {
		if i.hasRoom(jobType) && (least == nil || i.inFlight < least.inFlight) {
			least = i
		}
	}
	return least
}

// slots counts attempts and free slots. The fleet is locked.
func (g *generation) slots() (inFlight, free int) {
	for _, i := range g.live {
		inFlight += i.inFlight
		free += i.capacity - i.inFlight
	}
	return inFlight, free
}

// pids are those of the processes that are up. The fleet is locked.
func (g *generation) pids() []int {
	var pids []int
	for _, i := range g.live {
		pids = append(pids, i.PID())
	}
	return pids
}

// version has no name before the first process was up. The fleet is locked.
func (g *generation) version() job.PluginVersion {
	v := job.PluginVersion{Digest: g.binary.Digest}
	if g.manifest != nil {
		v.Version = g.manifest.Version
	}
	return v
}

// launchesLike reports whether its processes would be the same, and serve the same
// job types, under the other configuration, as long as the file is the same.
func (g *generation) launchesLike(other Config) bool {
	g.fleet.mu.Lock()
	m := g.manifest
	g.fleet.mu.Unlock()
	if !g.config.launchesLike(other) {
		return false
	}
	if m == nil { // It was refused, perhaps because of its job types.
		return slices.Equal(g.config.Types, other.Types) && slices.Equal(g.config.elsewhere, other.elsewhere)
	}
	serves := func(jobType string) bool { return !other.skips(jobType) }
	return !slices.ContainsFunc(m.Types, other.skips) && !slices.ContainsFunc(m.SkippedTypes, serves)
}

// agree makes the manifest the generation's own. It refuses one that differs from
// that of processes that are up: what a plugin serves must not depend on the process.
// The fleet is locked.
func (g *generation) agree(m *message.Manifest) error {
	if g.manifest != nil && g.manifest.Equal(m) {
		return nil
	}
	if len(g.live) > 0 {
		return errors.New("its manifest differs from the one of the plugin's processes that are up")
	}
	g.manifest = m
	return nil
}

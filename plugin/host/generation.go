package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/binary"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/connection"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/message"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/osprocess"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/trial"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// role is a generation's part in its fleet.
type role int

const (
	// candidate: it will serve if it proves itself.
	candidate role = iota
	// serving: it takes attempts.
	serving
	// retired: it has served, and finishes its attempts.
	retired
	// rejected: it was a candidate, and finishes its attempts.
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

	// draining is canceled when the generation must finish its attempts, and killing
	// when its time for that is over.
	draining context.Context
	drain    context.CancelFunc
	killing  context.Context
	kill     context.CancelFunc
	// running counts the goroutines that keep processes up, or run isolated attempts.
	running sync.WaitGroup
	// limits says how the configured limits are enforced.
	limits []v1.Enforcement
	// news is raised after any change, to wake the swap of this generation, or from it.
	news loop.Signal

	// The fleet's lock guards the fields below.

	role     role
	live     []*instance
	manifest *message.Manifest
	ramp     ramp
	// fault says why a candidate cannot serve; nil while nothing does.
	fault error
	// excused says that one death during its trial was excused. A second one will not
	// be.
	excused bool
	// promoted says that a swap made it serve.
	promoted bool
	// started says that its first process was up, and broke that its breaker has opened and
	// no process has come up since.
	started, broke bool
	// trial counts the attempts since the trial began, and lifetime counts all
	// attempts.
	trial, lifetime trial.Tally
	// result is how its trial ended.
	result comparison
	// durations holds how long successful attempts took.
	durations trial.Durations
}

// newGeneration takes over the file: closing it is the generation's task.
func (f *fleet) newGeneration(config Config, file *binary.File, as role) *generation {
	g := &generation{
		fleet: f, config: config, settings: f.settings, binary: file, role: as,
		log:     f.log.With("digest", file.Digest[:12]),
		breaker: newBreaker(f.settings.Backoff), isolatedBreaker: newBreaker(f.settings.Backoff),
		news: loop.NewSignal(), ramp: newRamp(),
	}
	// Job types come from the current configuration, even for an earlier version.
	g.config.Types, g.config.elsewhere = f.config.Types, f.config.elsewhere
	g.draining, g.drain = context.WithCancel(f.quitting)
	g.killing, g.kill = context.WithCancel(f.host.killing)
	identity, _ := osprocess.LookUp(config.User, config.Group)
	if g.limits = osprocess.Enforced(config.Limits, f.host.cgroups, identity); len(g.limits) > 0 {
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

// LaunchFailed is the log message of a launch that failed, for callers that present it
// differently.
const LaunchFailed = "plugin did not come up"

func (g *generation) launchFailed(b *breaker, err error) {
	if g.draining.Err() != nil {
		return
	}
	count := b.fail
	if connection.IsRefusal(err) {
		count = b.refuse
	}
	g.happened(job.PluginLaunchFailed, err)
	g.recordFailure(count, err, true)
	g.log.Warn(LaunchFailed, "error", err, "broken", b.broken())
}

func (g *generation) ended(i *instance, cause error) {
	up := time.Since(i.UpSince)
	log := g.log.With("pid", i.PID(), "up", up)
	if cause == nil || errors.Is(cause, connection.ErrClosing) {
		log.Info("plugin process stopped")
		return
	}
	if up >= g.settings.Backoff.StableAfter {
		g.breaker.reset()
	}
	cause = fmt.Errorf("pid %d: %w", i.PID(), cause)
	event, count := job.PluginKilled, g.breaker.pause
	if !errors.Is(cause, connection.ErrKilled) {
		event, count = job.PluginCrashed, g.breaker.fail
		g.countCrash()
	}
	g.happened(event, cause)
	g.recordFailure(count, cause, false)
	log.Warn("plugin process ended", "error", cause, "broken", g.breaker.broken())
}

// hasServed reports whether its failures count as failures of the plugin. The fleet is
// locked.
func (g *generation) hasServed() bool { return g.role == serving || g.role == retired }

func (g *generation) countCrash() {
	g.fleet.mu.Lock()
	defer g.fleet.mu.Unlock()
	if g.hasServed() {
		g.fleet.crashes++
	}
}

// recordFailure counts a launch that failed or a process that ended, and records why. It
// does both under the fleet's lock: whoever sees that a plugin is broken sees why. A failed
// launch is a candidate's fault. Lost has already decided what a death means.
func (g *generation) recordFailure(count func(), err error, launch bool) {
	f := g.fleet
	f.mu.Lock()
	count()
	switch {
	case g.hasServed():
		f.restarts++
		f.lastError, f.plainError = err.Error(), connection.WithoutOutput(err)
	case g.fault == nil && launch:
		g.fault = err
	}
	failing := g.keepsFailing()
	if failing && !g.broke {
		g.broke = true
		g.happenedLocked(job.PluginEvent{Event: job.PluginBroke, Reason: f.plainError}, g.breaker.describe())
	}
	f.mu.Unlock()
	g.signal()
	if failing {
		f.order((*conductor).rollBack)
	}
}

// keepsFailing reports whether the generation serves but cannot keep even one process
// up. The fleet is locked.
func (g *generation) keepsFailing() bool {
	return g.role == serving && len(g.live) == 0 && g.breaker.broken()
}

func (g *generation) add(i *instance) {
	g.fleet.mu.Lock()
	g.live = append(g.live, i)
	switch {
	case g.role != serving:
	case g.broke:
		g.broke = false
		g.happenedLocked(job.PluginEvent{Event: job.PluginMended}, nil)
	case !g.started && !g.promoted:
		g.happenedLocked(job.PluginEvent{Event: job.PluginStarted}, nil)
	}
	g.started = true
	g.fleet.mu.Unlock()
	g.log.Info("plugin process up", "pid", i.PID(), "plugin_version", i.Manifest.Version, "concurrency", i.capacity)
	g.signal()
}

func (g *generation) signal() {
	g.news.Raise()
	g.fleet.host.changed.Raise()
}

// leastLoaded returns the process with the fewest attempts that has room for the type;
// nil if none has. The fleet is locked.
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

// pids returns the ids of the processes that are up. The fleet is locked.
func (g *generation) pids() []int {
	pids := make([]int, 0, len(g.live))
	for _, i := range g.live {
		pids = append(pids, i.PID())
	}
	return pids
}

// version returns a version without a name until the first process is up. The fleet is
// locked.
func (g *generation) version() v1.PluginVersion {
	v := v1.PluginVersion{SHA256: g.binary.Digest}
	if g.manifest != nil {
		v.Version = g.manifest.Version
	}
	return v
}

// launchesLike reports whether the other configuration would launch the same processes,
// with the same job types, from the same file.
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

// agree sets the generation's manifest. It returns an error if the manifest differs
// from that of the processes that are up: what a plugin serves must not depend on the
// process. The fleet is locked.
func (g *generation) agree(m *message.Manifest) error {
	if g.manifest != nil && g.manifest.Equal(m) {
		return nil
	}
	if len(g.live) > 0 {
		return errors.New("its manifest differs from that of the plugin's other processes")
	}
	g.manifest = m
	return nil
}

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

// generation is one version of a plugin as it was configured then: its binary,
// which stays the same whatever becomes of the file, and its processes.
type generation struct {
	fleet    *fleet
	config   Config
	settings Settings
	binary   *binary.File
	log      *slog.Logger
	breaker  *breaker
	// aloneBreaker holds back the processes for one attempt. That one cannot
	// be launched says nothing of those that are up.
	aloneBreaker *breaker

	// draining ends when the generation has to finish, killing when it has
	// run out of time for it.
	draining context.Context
	drain    context.CancelFunc
	killing  context.Context
	kill     context.CancelFunc
	// slots are what keeps processes up, and the attempts that have one of
	// their own.
	slots sync.WaitGroup
	// limits says how those of the configuration are enforced.
	limits []job.Enforcement
	// news tells a swap that something has changed.
	news chan struct{}

	// What follows is guarded by the fleet.
	role     role
	live     []*process
	manifest *message.Manifest
	// ramp counts the attempts that have, or wait for, a process of their own.
	ramp ramp
	// fault is why a candidate cannot serve; nil while nothing speaks against
	// it.
	fault error
	// excused says that a death in its trial did not end it: the next one will.
	excused bool
	// enabled says that it serves because the plugin was enabled, and not by a
	// swap.
	enabled bool
	// trial counts the attempts since the trial of a candidate began, lifetime
	// all of them.
	trial, lifetime trial.Tally
	// tried is how its trial has ended.
	tried comparison
	// durations are those of attempts that succeeded.
	durations trial.Durations
}

// newGeneration takes the binary over.
func (f *fleet) newGeneration(config Config, binary *binary.File, as role) *generation {
	g := &generation{
		fleet: f, config: config, settings: f.settings, binary: binary, role: as,
		log:     f.log.With("digest", binary.Digest[:12]),
		breaker: newBreaker(f.settings.Backoff), aloneBreaker: newBreaker(f.settings.Backoff),
		news: make(chan struct{}, 1), ramp: newRamp(),
	}
	// Which plugin has which types is for all versions of a plugin alike.
	g.config.Types, g.config.elsewhere = f.config.Types, f.config.elsewhere
	g.draining, g.drain = context.WithCancel(f.quitting)
	g.killing, g.kill = context.WithCancel(f.host.killing)
	if g.limits = g.enforced(); len(g.limits) > 0 {
		g.log.Info("limits of each process", "enforced", inWords(g.limits))
	}
	return g
}

// start begins to launch its processes.
func (g *generation) start() {
	for range g.config.Processes {
		g.slots.Go(g.keepOneUp)
	}
}

// keepOneUp launches a process and serves it, again and again, until the
// generation drains. Each process slot has its own.
func (g *generation) keepOneUp() {
	for g.breaker.admit(g.draining) == nil {
		p, err := g.launch(g.draining)
		if err != nil {
			g.launchFailed(g.breaker, err)
			g.breaker.release()
			continue
		}
		g.add(p)
		g.breaker.release()
		g.ended(p, p.serve())
	}
}

// LaunchFailed is the message of the log record of a launch that has failed, for those
// who tell it in another way.
const LaunchFailed = "plugin did not come up"

func (g *generation) launchFailed(b *breaker, err error) {
	if g.draining.Err() != nil {
		return
	}
	if isRefusal(err) {
		b.refuse()
	} else {
		b.fail()
	}
	g.log.Warn(LaunchFailed, "error", err, "broken", b.broken())
	g.note(err, true)
}

func (g *generation) ended(p *process, cause error) {
	up := time.Since(p.upSince)
	log := g.log.With("pid", p.child.PID(), "up", up)
	if cause == nil || errors.Is(cause, errClosing) {
		log.Info("plugin process stopped")
		return
	}
	if up >= g.settings.Backoff.StableAfter {
		g.breaker.forgive()
	}
	cause = fmt.Errorf("pid %d: %w", p.child.PID(), cause)
	if errors.Is(cause, errKilled) {
		g.breaker.pause()
	} else {
		g.breaker.fail()
		g.crashed()
	}
	log.Warn("plugin process ended", "error", cause, "broken", g.breaker.broken())
	g.note(cause, false)
}

func (g *generation) crashed() {
	g.fleet.mu.Lock()
	defer g.fleet.mu.Unlock()
	if g.role == serving || g.role == retired {
		g.fleet.crashes++
	}
}

// note records why a launch failed or a process ended as an error of the plugin.
// Of a candidate, it speaks against it if it blames it; what a death means was
// decided when it happened.
func (g *generation) note(err error, blames bool) {
	f := g.fleet
	f.mu.Lock()
	switch {
	case g.role == serving || g.role == retired:
		f.restarts++
		f.lastError = err.Error()
	case g.fault == nil && blames:
		g.fault = err
	}
	failing := g.keepsFailing()
	f.mu.Unlock()
	g.signal()
	if failing {
		f.order(f.reconsider)
	}
}

// keepsFailing reports whether a version that serves does not stay up. One that
// has a process up is no such, whatever else of it fails. The fleet is locked.
func (g *generation) keepsFailing() bool {
	return g.role == serving && len(g.live) == 0 && g.breaker.broken()
}

func (g *generation) add(p *process) {
	g.fleet.mu.Lock()
	g.live = append(g.live, p)
	g.fleet.mu.Unlock()
	g.log.Info("plugin process up", "pid", p.child.PID(), "plugin_version", p.manifest.Version, "concurrency", p.capacity)
	g.signal()
}

// remove takes a process that has ended, or is about to, from those that are up.
func (g *generation) remove(p *process) {
	g.fleet.mu.Lock()
	g.removeLocked(p)
	g.fleet.mu.Unlock()
	g.signal()
}

func (g *generation) removeLocked(p *process) {
	g.live = slices.DeleteFunc(g.live, func(other *process) bool { return other == p })
	if !p.lost {
		p.lost, p.lostAs = true, g.role
	}
}

// lose removes a process, and in the same step says what that means for a
// candidate: it must not be promoted while its dead are cleared away.
func (g *generation) lose(p *process, cause error) {
	f := g.fleet
	f.mu.Lock()
	g.removeLocked(p)
	if g.role == candidate && isCrash(cause) && g.fault == nil {
		if p.excused = f.excuses(g); p.excused {
			g.trial.Add(true)
		} else {
			g.fault = fmt.Errorf("pid %d: %w", p.child.PID(), cause)
		}
	}
	f.mu.Unlock()
	g.signal()
}

// isCrash tells a process that has ended by itself, or had to be killed for what
// it did, from one that was drained, or killed on request.
func isCrash(cause error) bool {
	return cause != nil && !errors.Is(cause, errClosing) && !errors.Is(cause, errKilled)
}

func (g *generation) signal() {
	select {
	case g.news <- struct{}{}:
	default:
	}
	g.fleet.host.signal()
}

// leastLoaded is the process with a free slot for the type that has the fewest
// attempts; nil when none has one. The fleet is locked.
func (g *generation) leastLoaded(jobType string) *process {
	var least *process
	for _, p := range g.live {
		if p.hasRoom(jobType) && (least == nil || p.inFlight < least.inFlight) {
			least = p
		}
	}
	return least
}

// room counts attempts and free slots. The fleet is locked.
func (g *generation) room() (inFlight, free int) {
	for _, p := range g.live {
		inFlight += p.inFlight
		free += p.capacity - p.inFlight
	}
	return inFlight, free
}

// pids are those of the processes that are up. The fleet is locked.
func (g *generation) pids() []int {
	var pids []int
	for _, p := range g.live {
		pids = append(pids, p.child.PID())
	}
	return pids
}

// version is what is known of it by now. The fleet is locked.
func (g *generation) version() job.PluginVersion {
	v := job.PluginVersion{Digest: g.binary.Digest}
	if g.manifest != nil {
		v.Version = g.manifest.Version
	}
	return v
}

// launchesLike reports whether its processes would be the same, and serve the same
// job types, under the other configuration, as long as the file is.
func (g *generation) launchesLike(other Config) bool {
	g.fleet.mu.Lock()
	m := g.manifest
	g.fleet.mu.Unlock()
	if !g.config.launchesLike(other) {
		return false
	}
	if m == nil { // it was refused, perhaps because of them
		return slices.Equal(g.config.Types, other.Types) && slices.Equal(g.config.elsewhere, other.elsewhere)
	}
	return !slices.ContainsFunc(m.Types, other.leavesOut) && !slices.ContainsFunc(m.LeftOut, func(jobType string) bool {
		return !other.leavesOut(jobType)
	})
}

func (g *generation) isCandidate() bool {
	g.fleet.mu.Lock()
	defer g.fleet.mu.Unlock()
	return g.role == candidate
}

// agree takes the manifest for the generation's own. As long as processes are up
// with another one it is refused: what a plugin serves would depend on the
// process. The fleet is locked.
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

// settle frees the slots of attempts that have ended, and says what becomes of
// them in the light of what the generation is.
func (g *generation) settle(p *process, endings []ending) {
	if len(endings) == 0 {
		return
	}
	f, now := g.fleet, time.Now()
	f.mu.Lock()
	for i := range endings {
		a := endings[i].attempt
		p.free(a.jobType)
		if endings[i].outcome.Kind == job.Success {
			g.time(p, a, now)
		}
		endings[i].outcome = g.judge(p, endings[i].outcome)
	}
	f.mu.Unlock()
	f.host.signal()
}

// judge counts an outcome. One that speaks against a version that does not serve,
// or not yet, is not charged to the job, which others can still do. The fleet is
// locked.
func (g *generation) judge(p *process, outcome job.Outcome) job.Outcome {
	failed := false
	switch outcome.Kind {
	case job.Failure, job.PermanentFailure, job.Timeout, job.Crash:
		failed = true
	case job.Success, job.Snoozed:
	default:
		return outcome
	}
	g.lifetime.Add(failed)
	if !p.excused {
		g.trial.Add(failed)
	}
	if !failed || g.answersFor(p) {
		return outcome
	}
	return message.OnTrial(g.version(), outcome)
}

// answersFor reports whether a failure in the process is the job's, not the
// version's. What dies with a candidate is the version's, even if it is promoted
// before that is reported. The fleet is locked.
func (g *generation) answersFor(p *process) bool {
	switch {
	case p.excused:
		return g.role != rejected
	case p.lost && p.lostAs == candidate:
		return false
	}
	return g.role == serving || g.role == retired
}

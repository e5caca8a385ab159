package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/jobs"
)

// Config says how a process runs. Every field must be set, except where package jobs
// names a default.
type Config struct {
	jobs.Config
	// Worker is the process. Its roles say which loops run.
	Worker job.Worker
	// Concurrency bounds the attempts that run at once in this process.
	Concurrency int
	// Lease is how long the worker owns a job without a heartbeat.
	Lease time.Duration
	// Prefetch is how much work a worker claims before there is a slot for it; zero
	// for none.
	Prefetch time.Duration
	// DrainTimeout is how long running handlers may take to finish at shutdown.
	DrainTimeout time.Duration
	// KillGrace is how long a handler may ignore a cancel before its process is killed.
	// A handler whose lease runs out is killed in time whatever the grace is.
	KillGrace time.Duration
	// ReportInterval is how often the reports of a running attempt are written at most;
	// zero for as often as the database can. Later reports replace those that wait. It
	// never delays an attempt's end.
	ReportInterval time.Duration
	// Ageing is how long a job may be due before it is raised to the priority of the most
	// urgent job that waits in the same queue; zero for never.
	Ageing time.Duration
	// CrashPolicy is Expire or Release.
	CrashPolicy CrashPolicy
	// MaxCrashes returns how many processes may die under a job of the type before it
	// is dead; at least 1.
	MaxCrashes func(jobType string) int
	// JobLog is LogAll, LogSampled or LogNone.
	JobLog JobLog
}

func (c Config) validate() error {
	switch {
	case c.Worker.ID == "" || c.MaxCrashes == nil:
		return errors.New("worker and max crashes must be set")
	case len(c.Worker.Roles) == 0:
		return errors.New("the worker has no role")
	case c.CrashPolicy != Expire && c.CrashPolicy != Release:
		return fmt.Errorf("crash policy %q is neither %s nor %s", c.CrashPolicy, Expire, Release)
	case c.JobLog != LogAll && c.JobLog != LogSampled && c.JobLog != LogNone:
		return fmt.Errorf("job log %q is neither %s nor %s nor %s", c.JobLog, LogAll, LogSampled, LogNone)
	case c.Concurrency < 1:
		return fmt.Errorf("concurrency %d is below 1", c.Concurrency)
	case c.Lease < 100*time.Millisecond:
		return fmt.Errorf("lease %s is below 100ms", c.Lease)
	case c.Ageing < 0:
		return fmt.Errorf("ageing %s is below zero", c.Ageing)
	case c.KillGrace <= 0 || c.DrainTimeout < 0 || c.Prefetch < 0 || c.ReportInterval < 0:
		return fmt.Errorf("kill grace %s must be above zero, and drain timeout %s, prefetch %s and report interval %s not below it",
			c.KillGrace, c.DrainTimeout, c.Prefetch, c.ReportInterval)
	}
	return nil
}

// reapInterval is how often to look for expired leases and for processes that are gone. A job of
// a worker that vanished waits for the lease and this; in a crowd of processes that maintain, of
// which most has vanished, for the lease and up to mostReapIntervals of them.
func (c Config) reapInterval() time.Duration {
	return min(max(c.Lease/6, 50*time.Millisecond), 5*time.Second)
}

// Runtime is the loops that move jobs from the ready list through handlers to their end, as
// far as they belong to the roles of the process.
type Runtime struct {
	// Service is what the API talks to. It works until Run returns.
	*jobs.Service

	cfg          Config
	store        Store
	path         *path
	declarer     *declarer
	heartbeat    *heartbeat
	pauses       *pauses
	unserved     *unservedMonitor
	latencies    *latencyRecorder
	surroundings *surroundings
	// maintenance is nil without that role.
	maintenance *maintenance

	endWriting context.CancelFunc
}

// New wires the loops of a process. Nothing runs before Run. Without the role of a worker,
// plugins may be nil.
func New(cfg Config, store Store, plugins Plugins) (*Runtime, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("runtime: %w", err)
	}
	service, err := jobs.New(cfg.Config, store)
	if err != nil {
		return nil, fmt.Errorf("runtime: %w", err)
	}
	// Writing outlives every other loop: it ends when there is nothing left to write.
	writing, endWriting := context.WithCancel(context.Background())
	newPool := loop.NewSignal()
	p := newPath(writing, cfg, store, plugins, service, newPool)
	if err := service.Metrics.ObserveLeases(func() int { _, held := p.inFlight.counts(); return held }); err != nil {
		endWriting()
		return nil, fmt.Errorf("runtime: %w", err)
	}
	r := &Runtime{
		Service: service, cfg: cfg, store: store, path: p, endWriting: endWriting,
		declarer:  &declarer{cfg: cfg, store: store, plugins: plugins, jobs: service, changed: newPool},
		heartbeat: &heartbeat{cfg: cfg, store: store, inFlight: p.inFlight, metrics: service.Metrics, now: service.Hints.Heard(job.CancelAsked)},
		pauses:    &pauses{cfg: cfg, store: store, jobs: service, claimer: p.claimer, inFlight: p.inFlight},
		unserved:  &unservedMonitor{store: store, plugins: plugins, log: cfg.Log, wake: service.Hints.Ready(), pace: service.Pace},
		latencies: &latencyRecorder{store: store, metrics: service.Metrics, pace: service.Pace, log: cfg.Log},
		surroundings: &surroundings{
			cfg: cfg, store: store, pace: service.Pace, isGone: processGone,
			lost: loop.NewSignal(), declared: service.Hints.Heard(job.TypesDeclared),
		},
	}
	if r.works() {
		r.surroundings.plugins = plugins
	}
	if cfg.Worker.Roles.Has(job.RoleMaintenance) {
		r.maintenance = newMaintenance(cfg, store, service, p, r.surroundings.lost)
	}
	return r, nil
}

// Prepare makes the process known to the database and declares the job types of its plugins.
// Call it once before Run, so that a job submitted the moment the API listens finds its type and
// the limits known, and nothing that is paused is claimed.
func (r *Runtime) Prepare(ctx context.Context) error {
	if err := r.store.RegisterWorker(ctx, r.cfg.Worker, r.cfg.Lease); err != nil {
		return err
	}
	if r.works() {
		if err := r.declarer.declare(ctx); err != nil {
			return err
		}
	}
	if err := r.JobTypes.Load(ctx); err != nil {
		return err
	}
	return r.LoadRules(ctx)
}

// Run works until the context ends, then drains: it claims nothing more, lets running
// handlers finish within the drain timeout, releases the other jobs uncharged, and
// returns when every attempt is settled and every loop has ended. When abort ends as
// well, it gives up at once, and its jobs are recovered from the database.
func (r *Runtime) Run(ctx, abort context.Context) {
	defer r.endWriting()
	defer context.AfterFunc(abort, r.endWriting)()
	// The rings of loops end from the outside in: those that take on work, those that keep
	// running jobs alive, those that write, and the one to which they hand over.
	forever := context.WithoutCancel(ctx)
	taking, keeping, writing, handedOver := newRing(ctx), newRing(forever), newRing(forever), newRing(forever)

	writing.start(r.Service.Run)
	keeping.start(r.heartbeat.run)
	taking.start(r.surroundings.run)
	if r.works() || r.maintenance != nil { // attempts of its own, or of workers that are lost
		handedOver.start(func(ctx context.Context) { r.path.parents.run(ctx, r.path.settleParents) })
		writing.start(func(ctx context.Context) { r.path.settler.run(ctx, r.path.settle) })
	}
	if r.works() {
		writing.start(r.latencies.run)
		keeping.start(r.heartbeat.watch)
		keeping.start(func(ctx context.Context) { r.path.dispatcher.run(ctx, r.path.start) })
		taking.start(func(ctx context.Context) { r.path.claimer.run(ctx, r.path.claim) })
		taking.start(r.pauses.run)
		taking.start(r.declarer.run)
		taking.start(r.unserved.run)
	}
	if r.maintenance != nil {
		for _, run := range r.maintenance.loops() {
			taking.start(run)
		}
	}

	<-ctx.Done()
	taking.end()
	r.path.dispatcher.close()
	r.path.settler.drain()
	last := drain{cfg: r.cfg, store: r.store, inFlight: r.path.inFlight}
	if !last.run(abort) {
		r.endWriting()
	}
	keeping.end()
	r.path.reports.Close() // the settler waits for reports
	// Jobs that the reaper has taken over are not among those in flight. They are
	// settled too, unless the database does not answer.
	defer time.AfterFunc(settleTimeout, r.endWriting).Stop()
	writing.end()
	handedOver.end()
	r.path.log.close()
	r.Hints.Flush(abort) // what was released is announced last
	if running, _ := r.path.inFlight.counts(); running == 0 && abort.Err() == nil {
		last.signOff(abort)
	}
}

// works reports whether the process runs jobs.
func (r *Runtime) works() bool { return r.cfg.Worker.Roles.Has(job.RoleWorker) }

// ring is a group of loops that end together.
type ring struct {
	ctx    context.Context
	cancel context.CancelFunc
	loops  sync.WaitGroup
}

func newRing(ctx context.Context) *ring {
	ctx, cancel := context.WithCancel(ctx)
	return &ring{ctx: ctx, cancel: cancel}
}

func (r *ring) start(run func(context.Context)) {
	r.loops.Go(func() { run(r.ctx) })
}

func (r *ring) end() {
	r.cancel()
	r.loops.Wait()
}

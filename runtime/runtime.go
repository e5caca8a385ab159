package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/spans"
)

// Config says how a worker runs. Every field must be set, but for Tracer.
type Config struct {
	Worker job.Worker
	// Concurrency bounds the attempts that run at once in this process.
	Concurrency int
	// Lease is how long the worker owns a job without a heartbeat.
	Lease time.Duration
	// Prefetch is how much work a worker claims before there is a slot for
	// it; zero for none.
	Prefetch time.Duration
	// PollInterval is how often each loop looks for work that no hint announced.
	PollInterval time.Duration
	// DrainTimeout is how long running handlers may take to finish at shutdown.
	DrainTimeout time.Duration
	// KillGrace is how long a handler may ignore a cancel before its process
	// is killed. A handler whose lease runs out is killed in time whatever
	// the grace is.
	KillGrace time.Duration
	// ReportInterval is how often what a running attempt reports is written at most;
	// zero for as often as the database can. What its handler reports meanwhile
	// takes the place of what waits. An end is never held up by it.
	ReportInterval time.Duration
	// CrashPolicy is Expire or Release.
	CrashPolicy CrashPolicy
	// MaxCrashes says how many processes may die under a job of the type
	// before it is dead; at least 1.
	MaxCrashes func(jobType string) int
	// Resolve lays the configuration over what a handler declares about a
	// type, and fills in defaults.
	Resolve func(job.TypeSpec) job.TypeSpec
	Log     *slog.Logger
	// JobLog is LogAll, LogSampled or LogNone.
	JobLog JobLog
	// Meter is told what the loops do; docs/reference/telemetry.md lists it.
	Meter metric.Meter
	// Tracer makes the spans of jobs; nil for none. Its provider must be as
	// spans.New asks.
	Tracer trace.Tracer
}

// validate reports what cannot work.
func (c Config) validate() error {
	switch {
	case c.Worker.ID == "" || c.Resolve == nil || c.MaxCrashes == nil || c.Log == nil || c.Meter == nil:
		return errors.New("worker, resolve, max crashes, log and meter must be set")
	case c.CrashPolicy != Expire && c.CrashPolicy != Release:
		return fmt.Errorf("after crash %q is neither %s nor %s", c.CrashPolicy, Expire, Release)
	case c.JobLog != LogAll && c.JobLog != LogSampled && c.JobLog != LogNone:
		return fmt.Errorf("job log %q is neither %s nor %s nor %s", c.JobLog, LogAll, LogSampled, LogNone)
	case c.Concurrency < 1:
		return fmt.Errorf("concurrency %d is below 1", c.Concurrency)
	case c.Lease < 100*time.Millisecond:
		return fmt.Errorf("lease %s is below 100ms", c.Lease)
	case c.PollInterval <= 0 || c.KillGrace <= 0 || c.DrainTimeout < 0 || c.Prefetch < 0 || c.ReportInterval < 0:
		return fmt.Errorf("poll %s and kill grace %s must be above zero, drain %s, claim ahead %s and report every %s not below",
			c.PollInterval, c.KillGrace, c.DrainTimeout, c.Prefetch, c.ReportInterval)
	}
	return nil
}

// reapInterval is how often expired leases are looked for: the lease plus
// this is how long a job waits at most for a worker that vanished.
func (c Config) reapInterval() time.Duration {
	return min(max(c.Lease/6, 50*time.Millisecond), 5*time.Second)
}

// Runtime is a worker: the loops that move jobs from the ready list through
// handlers to their end.
type Runtime struct {
	cfg       Config
	store     Store
	handlers  Plugins
	held      *holdings
	catalog   *catalog
	settler   *settler
	submitter *submitter
	lineup    *lineup
	claimer   *claimer
	heartbeat *heartbeat
	reaper    *reaper
	scheduler *scheduler
	hints     *hints
	waiters   *waiters
	watch     *watch
	folder    *folder
	telemetry *telemetry
	spans     *spans.Tracer
	declare   signal

	settling    context.Context
	endSettling context.CancelFunc
}

// New wires the loops of a worker. Nothing runs before Run.
func New(cfg Config, store Store, handlers Plugins) (*Runtime, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("runtime: %w", err)
	}
	held := newHoldings()
	telemetry, err := newTelemetry(cfg.Meter, held)
	if err != nil {
		return nil, fmt.Errorf("runtime: %w", err)
	}
	// Settling outlives every other loop: it ends when there is nothing left.
	settling, endSettling := context.WithCancel(context.Background())
	r := &Runtime{
		cfg: cfg, store: store, handlers: handlers, held: held, declare: newSignal(),
		settling: settling, endSettling: endSettling, telemetry: telemetry, spans: spans.New(cfg.Tracer),
	}
	log := cfg.Log
	r.catalog = newCatalog(store, handlers, cfg, telemetry)
	r.settler = newSettler(settling, store, r.held, r.catalog, cfg, telemetry)
	r.hints = newHints(store, log, telemetry)
	r.lineup = newLineup(cfg, handlers, held)
	r.settler.freed = r.lineup.ended
	r.claimer = &claimer{
		store: store, handlers: handlers, held: r.held, lineup: r.lineup, settler: r.settler, log: log, cfg: cfg,
		woken: newSignal(), newPool: r.declare.raise, telemetry: telemetry, spans: r.spans,
	}
	r.heartbeat = &heartbeat{
		store: store, held: r.held, log: log, cfg: cfg, now: newSignal(), telemetry: telemetry,
	}
	r.reaper = &reaper{store: store, settler: r.settler, log: log, cfg: cfg, isGone: processGone, telemetry: telemetry, spans: r.spans}
	r.scheduler = &scheduler{store: store, log: log, cfg: cfg, promoted: r.jobsReady, sooner: newSignal(), telemetry: telemetry}
	r.submitter = newSubmitter(store, r.jobsReady, r.scheduler.dueIn, telemetry)
	r.folder = &folder{store: store, log: log}
	r.watch = &watch{store: store, handlers: handlers, log: log, wake: r.claimer.woken.raise}
	r.waiters = newWaiters(store, cfg, r.hints.send)
	r.settler.ended = r.waiters.jobEnded
	r.hints.heard[job.JobsAwaited] = r.waiters.awaited
	r.hints.heard[job.JobsEnded] = r.waiters.othersEnded
	r.settler.queued, r.settler.retried = r.jobsReady, r.scheduler.dueIn
	r.hints.heard[job.JobsReady] = r.claimer.woken.raise
	r.hints.heard[job.CancelAsked] = r.heartbeat.now.raise
	r.catalog.announce = func() { r.hints.send(job.TypesDeclared) }
	r.hints.heard[job.TypesDeclared] = r.declare.raise
	return r, nil
}

// jobsReady wakes our own claimer and tells the others.
func (r *Runtime) jobsReady() {
	r.claimer.woken.raise()
	r.hints.send(job.JobsReady)
}

// Submit stores a job, durably unless it is Fast, in one insert with whatever
// else is being submitted, and wakes a claimer. Errors: job.ErrKeyReused, job.ErrBadData,
// job.ErrUnavailable, or the context's, and job.ErrOutcomeUnknown with either if the
// job may have been stored. It may be called while Run runs.
func (r *Runtime) Submit(ctx context.Context, s job.Submission) (job.Receipt, error) {
	sent := r.spans.Send(ctx, &s)
	receipt, err := r.submitter.submit(ctx, s)
	sent.Done(job.Submitted{Receipt: receipt, Err: err})
	return receipt, err
}

// SubmitAll stores all of the jobs or none, and wakes a claimer. Nothing is
// stored when any of the results has an error. Errors are those of Submit.
func (r *Runtime) SubmitAll(ctx context.Context, batch []job.Submission) ([]job.Submitted, error) {
	batch, sent := r.spans.SendAll(ctx, batch)
	began := time.Now()
	results, err := r.store.SubmitAll(ctx, batch)
	sent.Done(results, err)
	r.telemetry.batch(opSubmit, len(batch), began, err)
	if err == nil {
		r.submitter.announce(batch, results)
	}
	return results, err
}

// Await returns the job once its state is final, or as it is when the
// context's deadline has passed. It returns job.ErrNotFound, and the
// context's error when it was canceled. It is woken while Run runs.
func (r *Runtime) Await(ctx context.Context, id job.ID) (job.View, error) {
	return r.waiters.await(ctx, id)
}

// JobEnded tells those who wait for a job that it has reached a final state
// by other means than a settlement.
func (r *Runtime) JobEnded(id job.ID) { r.waiters.jobEnded(id) }

// TraceCancel adds to the trace of a job that the request of the context canceled it,
// or asked its handler to stop. The request asked the database for it at that time.
func (r *Runtime) TraceCancel(ctx context.Context, canceled job.View, asked time.Time) {
	r.spans.Canceled(ctx, canceled, asked)
}

// TraceRequeue adds to the trace of a job that the request of the context requeued it.
// The request asked the database for it at that time.
func (r *Runtime) TraceRequeue(ctx context.Context, requeued job.Requeued, asked time.Time) {
	r.spans.Requeued(ctx, requeued, asked)
}

// TypeSpec returns what is known of a job type, or job.ErrUnknownType.
func (r *Runtime) TypeSpec(ctx context.Context, jobType string) (job.TypeSpec, error) {
	return r.catalog.spec(ctx, jobType)
}

// JobsReady tells the claimers that jobs were put on the ready list by other
// means than Submit.
func (r *Runtime) JobsReady() { r.jobsReady() }

// CancelAsked tells the owners of running jobs to look for cancel requests.
func (r *Runtime) CancelAsked() {
	r.heartbeat.now.raise()
	r.hints.send(job.CancelAsked)
}

// Prepare makes the worker known to the database and declares its job types.
// It is to be called once before Run, so that whoever submits a job the
// moment the API listens finds its type known.
func (r *Runtime) Prepare(ctx context.Context) error {
	if err := r.store.RegisterWorker(ctx, r.cfg.Worker, r.cfg.Lease); err != nil {
		return err
	}
	if err := r.catalog.declare(ctx); err != nil {
		return err
	}
	return r.catalog.load(ctx)
}

// Run works until the context ends, then drains: it claims nothing more, lets
// running handlers finish for the drain period, gives the rest back
// uncharged, and returns when every attempt is settled and every loop has
// ended. When abort ends as well, it gives up at once, and what it held is
// recovered from the database.
//
// Submit works until Run returns.
func (r *Runtime) Run(ctx, abort context.Context) {
	defer r.endSettling()
	stopWatching := context.AfterFunc(abort, r.endSettling)
	defer stopWatching()
	// Three rings of loops, ended from the outside in: those that take on
	// work, those that keep what was taken on alive, and those that write.
	taking, keeping, writing := newRing(ctx), newRing(context.WithoutCancel(ctx)), newRing(context.WithoutCancel(ctx))

	writing.start(func(ctx context.Context) { r.settler.batch.run(ctx) })
	writing.start(func(ctx context.Context) { r.submitter.durable.run(ctx) })
	writing.start(func(ctx context.Context) { r.submitter.fast.run(ctx) })
	keeping.start(r.heartbeat.run)
	keeping.start(r.heartbeat.watch)
	for _, hint := range job.Hints() {
		keeping.start(func(ctx context.Context) { r.hints.sendLoop(ctx, hint) })
	}
	keeping.start(r.hints.listenLoop)
	keeping.start(r.waiters.run)
	taking.start(r.claimer.run)
	taking.start(r.reaper.run)
	taking.start(r.scheduler.run)
	taking.start(r.watch.run)
	taking.start(r.folder.run)
	taking.start(func(ctx context.Context) { r.catalog.run(ctx, r.declare) })

	<-ctx.Done()
	taking.end()
	r.lineup.close()
	r.drain(abort)
	keeping.end()
	r.settler.notes.close() // it hands ends on to the settler
	// What the reaper has taken over is not among what we hold. It is settled
	// too, unless the database does not answer.
	lastTry := time.AfterFunc(settleTimeout, r.endSettling)
	defer lastTry.Stop()
	writing.end()
	r.settler.jobLog.close()
	if running, _ := r.held.counts(); running == 0 && abort.Err() == nil {
		r.signOff(abort)
	}
}

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

func (r *ring) start(loop func(context.Context)) {
	r.loops.Go(func() { loop(r.ctx) })
}

func (r *ring) end() {
	r.cancel()
	r.loops.Wait()
}

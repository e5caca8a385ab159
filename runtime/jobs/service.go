// Package jobs is what the API talks to: it submits jobs, waits for them,
// cancels and requeues them, and wakes whoever acts on them next, in this process
// and in others. A worker has one Service; so has a process without a worker.
package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/metrics"
	"github.com/holdfast-jobs/holdfast/runtime/spans"
)

// Store is what a service needs of the database.
type Store interface {
	Submit(ctx context.Context, batch []job.Submission) []job.Submitted
	SubmitAll(ctx context.Context, batch []job.Submission) ([]job.Submitted, error)
	Get(ctx context.Context, id job.ID) (job.View, error)
	Ended(ctx context.Context, ids []job.ID) ([]job.View, error)
	Cancel(ctx context.Context, id job.ID) (job.Cancellation, error)
	Release(ctx context.Context, id job.ID) (job.View, error)
	Requeue(ctx context.Context, id job.ID) (job.View, error)
	Redrive(ctx context.Context, filter job.DeadLetterFilter) ([]job.Requeued, error)
	Edit(ctx context.Context, id job.ID, edit job.Edit) (view job.View, gated bool, err error)
	EditAll(ctx context.Context, filter job.Filter, edit job.Edit) (job.EditPage, error)
	Catalog(ctx context.Context) ([]job.TypeSpec, error)
	Rules(ctx context.Context) (rules *job.Rules, expired bool, err error)
	SetLimit(ctx context.Context, limit job.Limit) (job.Limit, error)
	DeleteLimit(ctx context.Context, scope job.LimitScope, name string) error
	SyncLimits(ctx context.Context, limits []job.Limit) ([]job.LimitChange, error)
	SetPause(ctx context.Context, pause job.Pause, lasts time.Duration) (job.Pause, error)
	EndPause(ctx context.Context, scope job.PauseScope, name string) error
	EndExpiredPauses(ctx context.Context) ([]job.Pause, error)
	SlotsUsed(ctx context.Context, gates []job.Gate) (map[job.Gate]int, error)
	DrainWorker(ctx context.Context, worker string) error
	ResumeWorker(ctx context.Context, worker string) error
	Send(ctx context.Context, hint job.Hint) error
	Listen(ctx context.Context, ready func(), heard func(job.Hint)) error
}

// Config says how a service works. Fields without a word about a default must be
// set.
type Config struct {
	// PollInterval is how often to look for what no hint announced.
	PollInterval time.Duration
	// PollOnly saves the connection that listens for hints: what other processes do
	// is found by polling.
	PollOnly bool
	// Resolve lays the configuration over what a handler declares about a type, and
	// fills in defaults.
	Resolve func(job.TypeSpec) job.TypeSpec
	// AcceptUnknownTypes resolves types that no handler has declared.
	AcceptUnknownTypes bool
	// Fast says whether submissions of a type are answered before they are on disk;
	// nil for none.
	Fast func(jobType string) bool
	Log  *slog.Logger
	// Meter is what the metrics are declared on; see package metrics.
	Meter metric.Meter
	// Tracer makes the spans of jobs; nil for none. Its provider must be as spans.New
	// demands.
	Tracer trace.Tracer
}

// Service is safe for concurrent use. Its methods work while Run runs.
type Service struct {
	Metrics  *metrics.Metrics
	Spans    *spans.Tracer
	Hints    *Hints
	JobTypes *Types
	// Due is the scheduler's wait for the next job.
	Due *loop.Alarm
	// Expiry is the expirer's wait for the next job that expires.
	Expiry *loop.Alarm

	cfg   Config
	store Store
	// admits says that a loop in this process admits jobs.
	admits    bool
	rules     *rules
	submitter *submitter
	waiters   *waiters
}

// New returns a service. Nothing runs before Run.
func New(cfg Config, store Store) (*Service, error) {
	if cfg.Resolve == nil || cfg.Log == nil || cfg.Meter == nil || cfg.PollInterval <= 0 {
		return nil, errors.New("resolve, log, meter and a poll interval above zero must be set")
	}
	measured, err := metrics.New(cfg.Meter)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	s := &Service{cfg: cfg, store: store, Metrics: measured, Spans: spans.New(cfg.Tracer), Due: loop.NewAlarm(), Expiry: loop.NewAlarm()}
	s.Hints = newHints(store, cfg.Log, measured)
	s.JobTypes = &Types{store: store, cfg: cfg, metrics: measured, known: make(map[string]job.TypeSpec)}
	s.rules = &rules{store: store, cfg: cfg, metrics: measured, hints: s.Hints, changed: loop.NewSignal()}
	s.submitter = newSubmitter(store, s.submitted, measured)
	s.waiters = newWaiters(store, cfg, s.Hints)
	return s, nil
}

// Run works until the context ends. Submissions that arrived before are still
// stored.
func (s *Service) Run(ctx context.Context) {
	var loops sync.WaitGroup
	defer loops.Wait()
	for _, run := range []func(context.Context){
		s.submitter.durable.run, s.submitter.fast.run, s.Hints.run, s.waiters.run,
		func(ctx context.Context) { s.JobTypes.run(ctx, s.Hints.Heard(job.TypesDeclared)) },
		func(ctx context.Context) { s.rules.run(ctx, s.Hints.Heard(job.RulesChanged)) },
	} {
		loops.Go(func() { run(ctx) })
	}
	if !s.cfg.PollOnly {
		loops.Go(func() { s.Hints.listen(ctx) })
	}
}

// Submit stores a job, durably unless its type is fast, in one insert with
// whatever else is being submitted, and wakes a claimer, or the admitter if the job has
// gates to pass. Errors: job.ErrKeyReused,
// job.ErrBadData, job.ErrUnavailable, or the context's, and job.ErrOutcomeUnknown
// with either if the job may have been stored.
func (s *Service) Submit(ctx context.Context, one job.Submission) (job.Receipt, error) {
	s.prepare(&one)
	sent := s.Spans.Send(ctx, &one)
	receipt, err := s.submitter.submit(ctx, one)
	sent.Done(job.Submitted{Receipt: receipt, Err: err})
	return receipt, err
}

// SubmitEach is Submit for each of the jobs, which are stored together. Of several
// with the same key, the first counts.
func (s *Service) SubmitEach(ctx context.Context, batch []job.Submission) []job.Submitted {
	batch = s.prepared(batch)
	sent := s.Spans.SendAll(ctx, batch)
	results := s.submitter.submitEach(ctx, batch)
	for i, one := range sent {
		one.Done(results[i])
	}
	return results
}

// SubmitAll stores all of the jobs or none, and wakes a claimer. Nothing is
// stored when any of the results has an error. Errors are those of Submit.
func (s *Service) SubmitAll(ctx context.Context, batch []job.Submission) ([]job.Submitted, error) {
	batch = s.prepared(batch)
	sent := s.Spans.SendAll(ctx, batch)
	began := time.Now()
	results, err := s.store.SubmitAll(ctx, batch)
	sent.Done(results, err)
	s.Metrics.Batch(metrics.OpSubmit, len(batch), began, err)
	if err == nil {
		s.submitted(batch, results)
	}
	return results, err
}

// prepared is a copy of the batch: the caller's own stays as it is.
func (s *Service) prepared(batch []job.Submission) []job.Submission {
	batch = slices.Clone(batch)
	for i := range batch {
		s.prepare(&batch[i])
	}
	return batch
}

// prepare fills in what the configuration and the rules of this moment say.
func (s *Service) prepare(one *job.Submission) {
	one.Fast = one.Fast || s.fast(one.Type)
	one.Gates = s.Rules().Gates(one.Type, one.Tenant, one.Terms)
}

func (s *Service) fast(jobType string) bool { return s.cfg.Fast != nil && s.cfg.Fast(jobType) }

// submitted wakes whoever acts on the jobs next.
func (s *Service) submitted(batch []job.Submission, results []job.Submitted) {
	queued, parked := false, false
	for i, result := range results {
		if result.Err != nil || result.Receipt.Replayed || result.Receipt.Duplicate {
			continue
		}
		switch {
		case batch[i].TTL > 0:
			s.Expiry.In(batch[i].TTL)
		case !batch[i].ExpiresAt.IsZero():
			s.Expiry.In(time.Until(batch[i].ExpiresAt)) // polls find it if the clocks differ
		}
		switch {
		case result.Receipt.State == job.Queued && len(batch[i].Gates) > 0:
			parked = true
		case result.Receipt.State == job.Queued:
			queued = true
		case result.Receipt.State == job.Created && !batch[i].Hold:
			s.Due.In(0) // only the database knows when: the scheduler asks it
		}
	}
	if queued {
		s.Hints.Announce(job.JobsReady)
	}
	if parked {
		s.GatesChanged()
	}
}

// Admits returns the signal of the loop that admits jobs in this process. Call it before
// Run. Without such a loop, other processes are told of what happens at gates.
func (s *Service) Admits() loop.Signal {
	s.admits = true
	return s.Hints.Heard(job.GatesChanged)
}

// GatesChanged wakes whoever admits jobs: one process is enough.
func (s *Service) GatesChanged() {
	if s.admits {
		s.Hints.Heard(job.GatesChanged).Raise()
	} else {
		s.Hints.Send(job.GatesChanged)
	}
}

// Admitted measures a round of admission, and wakes whoever acts next on its jobs.
func (s *Service) Admitted(done job.Admission) {
	s.Metrics.Admitted(done.Admitted)
	if len(done.Admitted) > 0 {
		s.Hints.Announce(job.JobsReady)
	}
	if done.CancelAsked > 0 {
		s.Hints.Announce(job.CancelAsked)
	}
	for _, id := range done.Canceled {
		s.waiters.jobEnded(id)
	}
}

// queued wakes whoever acts next on jobs that are due now: they are on the ready list, or
// wait at a gate.
func (s *Service) queued() {
	s.Hints.Announce(job.JobsReady)
	s.GatesChanged()
}

// Settled wakes whoever acts next on a job that a worker has settled.
func (s *Service) Settled(settled *job.Settlement) {
	if settled.Gated {
		s.GatesChanged()
	}
	switch settled.To {
	case job.Retry:
		s.Due.In(settled.Delay)
	case job.Queued:
		s.Hints.Announce(job.JobsReady)
	case job.Succeeded, job.Dead, job.Canceled:
		s.waiters.jobEnded(settled.JobID)
	case job.Created, job.Running:
	}
}

// Lapsed says that the jobs were canceled because they had not started by their time,
// which the database was asked for at the moment given.
func (s *Service) Lapsed(jobs []job.Lapsed, asked time.Time) {
	freed := false
	for _, one := range jobs {
		s.waiters.jobEnded(one.ID)
		s.Metrics.Expired(one.Type)
		s.Spans.Lapsed(one, asked)
		freed = freed || one.Freed
	}
	if freed {
		s.GatesChanged()
	}
}

// Await returns the job once its state is final, or as it is when the context's
// deadline has passed. It returns job.ErrNotFound, and the context's error when it
// was canceled.
func (s *Service) Await(ctx context.Context, id job.ID) (job.View, error) {
	return s.waiters.await(ctx, id)
}

// Cancel ends a waiting job at once, and asks the worker of a running one to stop
// its handler without waiting for the next heartbeat.
func (s *Service) Cancel(ctx context.Context, id job.ID) (job.View, error) {
	asked := time.Now()
	canceled, err := s.store.Cancel(ctx, id)
	switch {
	case err != nil:
	case canceled.State == job.Running:
		s.Hints.Announce(job.CancelAsked)
	case canceled.State == job.Canceled:
		s.waiters.jobEnded(id)
		s.GatesChanged()
	}
	if canceled.Canceled || canceled.Requested {
		s.Spans.Canceled(ctx, canceled.View, asked)
	}
	return canceled.View, err
}

// Release makes a created job eligible and wakes a claimer.
func (s *Service) Release(ctx context.Context, id job.ID) (job.View, error) {
	view, err := s.store.Release(ctx, id)
	if err == nil {
		s.queued()
	}
	return view, err
}

// Requeue gives a dead job all its attempts again and wakes a claimer.
func (s *Service) Requeue(ctx context.Context, id job.ID) (job.View, error) {
	asked := time.Now()
	view, err := s.store.Requeue(ctx, id)
	if err == nil {
		s.requeued(ctx, []job.Requeued{{ID: id, Type: view.Type, Tenant: view.Tenant, Trace: view.Trace}}, asked)
	}
	return view, err
}

// Redrive requeues the dead jobs that the filter chooses, wakes a claimer, and
// returns how many there were.
func (s *Service) Redrive(ctx context.Context, filter job.DeadLetterFilter) (int, error) {
	asked := time.Now()
	requeued, err := s.store.Redrive(ctx, filter)
	s.requeued(ctx, requeued, asked)
	return len(requeued), err
}

func (s *Service) requeued(ctx context.Context, jobs []job.Requeued, asked time.Time) {
	if len(jobs) > 0 {
		s.queued()
	}
	for _, one := range jobs {
		s.Spans.Requeued(ctx, one, asked)
	}
}

// Edit changes a job that waits, and wakes whoever acts on it next. For a job that runs
// or has ended, it returns job.ErrWrongState, and the job as it is.
func (s *Service) Edit(ctx context.Context, id job.ID, edit job.Edit) (job.View, error) {
	asked := time.Now()
	view, gated, err := s.store.Edit(ctx, id, edit)
	if err == nil {
		s.edited(ctx, []job.Edited{{ID: id, Type: view.Type, Tenant: view.Tenant, State: view.State, Trace: view.Trace, Gated: gated}}, asked)
	}
	return view, err
}

// EditAll changes the jobs of a page of a list of jobs that wait, and wakes whoever acts
// on them next.
func (s *Service) EditAll(ctx context.Context, filter job.Filter, edit job.Edit) (job.EditPage, error) {
	asked := time.Now()
	page, err := s.store.EditAll(ctx, filter, edit)
	s.edited(ctx, page.Edited, asked)
	return page, err
}

func (s *Service) edited(ctx context.Context, jobs []job.Edited, asked time.Time) {
	queued, scheduled, gated := false, false, false
	for _, one := range jobs {
		queued = queued || one.State == job.Queued
		scheduled = scheduled || one.State != job.Queued
		gated = gated || one.Gated
		s.Spans.Edited(ctx, one, asked)
	}
	if gated {
		s.GatesChanged()
	}
	if queued {
		s.Hints.Announce(job.JobsReady)
	}
	if scheduled {
		s.Due.In(0) // only the database knows when: the scheduler asks it
	}
}

// TypeSpec returns what is known of a job type. For a type that no handler has
// declared it returns job.ErrUnknownType, or the defaults if the configuration
// accepts such types.
func (s *Service) TypeSpec(ctx context.Context, jobType string) (job.TypeSpec, error) {
	spec, err := s.JobTypes.spec(ctx, jobType)
	if errors.Is(err, job.ErrUnknownType) && s.cfg.AcceptUnknownTypes {
		return s.cfg.Resolve(job.TypeSpec{Type: jobType}), nil
	}
	return spec, err
}

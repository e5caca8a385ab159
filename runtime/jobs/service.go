// Package jobs is what the API talks to: it submits jobs, waits for them,
// cancels and requeues them, and wakes whoever acts on them next, in this process
// and in others. A worker has one Service; so has a process without a worker.
package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/metrics"
	"github.com/holdfast-jobs/holdfast/runtime/spans"
)

// Store is what a service needs of the database.
type Store interface {
	Submit(ctx context.Context, batch []job.Submission) []job.Submitted
	SubmitAll(ctx context.Context, batch []job.Submission) ([]job.Submitted, error)
	Known(ctx context.Context, submission job.Submission) (bool, error)
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
	SubmitWorkflow(ctx context.Context, w job.WorkflowSubmission) (job.WorkflowReceipt, error)
	CancelWorkflow(ctx context.Context, id job.ID) error
	CancelPortion(ctx context.Context, id job.ID) ([]job.ID, error)
	HoldWorkflow(ctx context.Context, id job.ID) error
	ReleaseWorkflow(ctx context.Context, id job.ID) error
	SweepWorkflows(ctx context.Context, workflows []job.ID) (job.Following, error)
	OpenWorkflowJobs(ctx context.Context, id job.ID, running bool, states ...job.State) ([]job.ID, error)
	SetLimit(ctx context.Context, limit job.Limit) (job.Limit, error)
	DeleteLimit(ctx context.Context, scope job.LimitScope, name string) error
	SyncLimits(ctx context.Context, limits []job.Limit) ([]job.LimitChange, error)
	SetPause(ctx context.Context, pause job.Pause, lasts time.Duration) (job.Pause, error)
	EndPause(ctx context.Context, scope job.PauseScope, name string) error
	EndExpiredPauses(ctx context.Context) ([]job.Pause, error)
	SlotsUsed(ctx context.Context, gates []job.Gate) (map[job.Gate]int, error)
	Erase(ctx context.Context, id job.ID, by, reason string) (job.View, error)
	AskErasure(ctx context.Context, asked job.Erasure) (job.Erasure, error)
	Erasures(ctx context.Context, filter job.ErasureFilter) ([]job.Erasure, error)
	PreviewOperation(ctx context.Context, filter job.Filter) (job.Preview, error)
	StartOperation(ctx context.Context, start job.OperationStart) (job.Operation, error)
	StopOperation(ctx context.Context, id job.ID, by, tenant string) (job.Operation, error)
	Operations(ctx context.Context, filter job.OperationFilter) ([]job.Operation, error)
	PlanRetention(ctx context.Context, policies job.RetentionPolicies) (job.RetentionPlan, error)
	DrainWorker(ctx context.Context, worker string) error
	ResumeWorker(ctx context.Context, worker string) error
	Send(ctx context.Context, notice job.Notice) error
	Listen(ctx context.Context, ready func(), heard func(job.Notice)) error
	ScheduleStore
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
	// Accept makes a job of a submission that comes from inside, as if a client of the
	// tenant had sent it; see Service.Accept. Nil for none.
	Accept func(ctx context.Context, s *Service, text []byte, tenant string, trace job.Trace) (job.Submission, error)
	// Fast says whether submissions of a type are answered before they are on disk;
	// nil for none.
	Fast func(jobType string) bool
	// Retention is how long ended jobs are kept; for ever by default.
	Retention job.RetentionPolicies
	// CallbackURL is told of the ends of jobs of a type whose submissions name none; nil
	// for nobody.
	CallbackURL func(jobType string) string
	// Events is which ends become events.
	Events job.EventLog
	// Cell is the cell of the database, if any.
	Cell job.Cell
	Log  *slog.Logger
	// Meter is what the metrics are declared on; see package metrics.
	Meter metric.Meter
	// Spans takes the spans of jobs; nil for none.
	Spans spans.Exporter
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
	// Retention is how long ended jobs are kept.
	Retention *Retention
	// Erasing is the eraser's wait for the next erasure.
	Erasing *loop.Alarm
	// Operating is the operator's wait for the next portion of an operation.
	Operating *loop.Alarm
	// Ticks is the ticker's wait for the next tick of a schedule.
	Ticks *loop.Alarm
	// Pace is how often to look for what any of several processes can do.
	Pace *Pace

	cfg   Config
	store Store
	// maintains says that the loops which maintain run in this process.
	maintains bool
	// admits says that a loop in this process admits jobs.
	admits bool
	// follows says that a loop in this process follows ended jobs up.
	follows   bool
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
	s := &Service{
		cfg: cfg, store: store, Metrics: measured, Spans: spans.New(cfg.Spans), Due: loop.NewAlarm(), Expiry: loop.NewAlarm(),
		Retention: newRetention(cfg.Retention), Erasing: loop.NewAlarm(), Operating: loop.NewAlarm(), Ticks: loop.NewAlarm(),
		Pace: &Pace{poll: cfg.PollInterval},
	}
	s.Hints = newHints(store, cfg.Log, measured, s.Pace)
	s.JobTypes = &Types{store: store, cfg: cfg, metrics: measured, known: make(map[string]job.TypeSpec)}
	s.rules = &rules{store: store, cfg: cfg, metrics: measured, hints: s.Hints, changed: loop.NewSignal(), pace: s.Pace}
	s.submitter = newSubmitter(store, s.Submitted, measured)
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
	if s.maintains {
		loops.Go(func() { s.heedTimers(ctx) })
		loops.Go(func() { s.heedMaintenance(ctx) })
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

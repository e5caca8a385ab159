package api

import (
	"context"
	"time"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Jobs is the ledger as clients use it. Every method can return job.ErrUnavailable, or
// the error of a context that is done. If the method changes something, either can
// come with job.ErrOutcomeUnknown. Methods that take an id can return job.ErrNotFound.
type Jobs interface {
	// Submit makes the job, or finds the one that an earlier submission with the
	// same key made. It returns job.ErrKeyReused and job.ErrBadData.
	Submit(ctx context.Context, s job.Submission) (job.Receipt, error)
	// SubmitEach is Submit for each of the jobs. Of several with the same key, the first
	// counts.
	SubmitEach(ctx context.Context, batch []job.Submission) []job.Submitted
	// SubmitAll makes all of the jobs, or none if any of the results has an error, such
	// as job.ErrKeyReused. It can also return job.ErrBadData.
	SubmitAll(ctx context.Context, batch []job.Submission) ([]job.Submitted, error)
	// Known reports whether the submission's key has already made a job of the same
	// type and payload.
	Known(ctx context.Context, s job.Submission) (bool, error)
	Get(ctx context.Context, id job.ID) (job.View, error)
	// Await returns the job once its state is final, or its current state when the
	// context's deadline has passed.
	Await(ctx context.Context, id job.ID) (job.View, error)
	// List returns a page of the jobs that match the filter.
	List(ctx context.Context, filter job.Filter) (job.Page, error)
	// Cancel cancels a waiting job at once and asks a running one to stop. A canceled job
	// stays as it is. For a job that succeeded or is dead, it returns job.ErrWrongState.
	Cancel(ctx context.Context, id job.ID) (job.View, error)
	// Hold keeps a scheduled job until it is released. For a job in any other state than
	// created, it returns job.ErrWrongState.
	Hold(ctx context.Context, id job.ID) (job.View, error)
	// Release makes a created job eligible. For a job in any other state, it returns
	// job.ErrWrongState.
	Release(ctx context.Context, id job.ID) (job.View, error)
	// Requeue gives a dead job all its attempts again. For a job in any other state, it
	// returns job.ErrWrongState.
	Requeue(ctx context.Context, id job.ID) (job.View, error)
	// Redrive requeues the dead jobs that match the filter, the longest dead first, and
	// returns how many it requeued.
	Redrive(ctx context.Context, filter job.DeadLetterFilter) (int, error)
	// Edit changes a job that waits. For a job that runs or has ended, it returns
	// job.ErrWrongState, and the job as it is.
	Edit(ctx context.Context, id job.ID, edit job.Edit) (job.View, error)
	// EditAll changes the jobs of a page that List would return for the filter, whose states
	// are ones in which a job waits. It leaves out jobs that do not match any more.
	EditAll(ctx context.Context, filter job.Filter, edit job.Edit) (job.EditPage, error)
	// DeadLetters lists the dead jobs that match the filter, newest first.
	DeadLetters(ctx context.Context, filter job.DeadLetterFilter) ([]job.DeadLetter, error)
	// TypeSpec returns the defaults of a job type, or job.ErrUnknownType.
	TypeSpec(ctx context.Context, jobType string) (job.TypeSpec, error)
	// Types returns every job type that a handler has ever declared, by name.
	Types(ctx context.Context) ([]job.TypeSpec, error)
	// Ping returns nil if the database answers.
	Ping(ctx context.Context) error
}

// Operations is the ledger as operators see it. Every method can return
// job.ErrUnavailable, or the error of a context that is done.
type Operations interface {
	// Detail returns everything about a job, or job.ErrNotFound.
	Detail(ctx context.Context, id job.ID) (job.Detail, error)
	// Logs returns the logs of a job's attempts that match the filter, oldest
	// first. A job that does not exist has none.
	Logs(ctx context.Context, id job.ID, filter job.LogFilter) ([]job.AttemptLog, error)
	// Workers lists the known orchestrators, alive or not.
	Workers(ctx context.Context) ([]v1.Worker, error)
	// WorkerTotals counts, by state, the jobs that workers run, and those that they
	// ended within the window. A window of 0 covers all time.
	WorkerTotals(ctx context.Context, window time.Duration) (map[job.State]int64, error)
	// Queues counts the waiting, running and dead jobs of each type.
	Queues(ctx context.Context) ([]v1.Queue, error)
	// Metrics returns the state of the whole system.
	Metrics(ctx context.Context, window time.Duration) (v1.Metrics, error)
	// Diagnose looks for problems. It may take minutes on a large ledger.
	Diagnose(ctx context.Context) ([]job.Check, error)
}

// Rules are the limits and pauses, and the drains of workers. Every method can return
// job.ErrUnavailable, or the error of a context that is done; with job.ErrOutcomeUnknown if
// it changes something.
type Rules interface {
	// FreshRules are the rules as the database has them.
	FreshRules(ctx context.Context) (*job.Rules, error)
	// SlotsUsed returns how many jobs hold a slot of each of the gates.
	SlotsUsed(ctx context.Context, gates []job.Gate) (map[job.Gate]int, error)
	// SetLimit returns job.ErrConfigured if a configuration has set the limit. So does
	// DeleteLimit, and job.ErrNoLimit if there is none.
	SetLimit(ctx context.Context, limit job.Limit) (job.Limit, error)
	DeleteLimit(ctx context.Context, scope job.LimitScope, name string) error
	// SetPause begins a pause or replaces one. If lasts is above zero, it ends after that
	// time.
	SetPause(ctx context.Context, pause job.Pause, lasts time.Duration) (job.Pause, error)
	// EndPause returns job.ErrNoPause if there is none.
	EndPause(ctx context.Context, scope job.PauseScope, name string) error
	// DrainWorker and ResumeWorker return job.ErrNoWorker.
	DrainWorker(ctx context.Context, worker string) error
	ResumeWorker(ctx context.Context, worker string) error
}

// Plugins are the plugins of the orchestrator that serves the API. The methods that
// take a name can return job.ErrNoPlugin, or the error of the context if it ends
// first.
type Plugins interface {
	// Status describes all of them, in the order of the configuration.
	Status() []v1.Plugin
	// Swap replaces the serving version with what the file is now, and returns the
	// result. force ignores jobs that the new version cannot run. If the context is
	// done first, the returned swap continues; if it is empty, the swap has not begun
	// and never will.
	Swap(ctx context.Context, name string, force bool) (v1.PluginSwap, error)
	// Restart replaces the processes with new ones of the same version.
	Restart(ctx context.Context, name string) (v1.PluginSwap, error)
	// Disable stops a plugin when it has finished its attempts. Enable starts it
	// again; with force, even a version that was rolled back or refused before.
	Disable(ctx context.Context, name string) error
	Enable(ctx context.Context, name string, force bool) error
}

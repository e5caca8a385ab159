package api

import (
	"context"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Jobs is the ledger as clients use it. Any method can return
// job.ErrUnavailable, and the error of a context that is done, and
// job.ErrOutcomeUnknown with either if it changes something; those that take
// an id return job.ErrNotFound.
type Jobs interface {
	// Submit makes the job, or finds the one that an earlier submission with
	// the same key made. It returns job.ErrKeyReused and job.ErrBadData.
	Submit(ctx context.Context, s job.Submission) (job.Receipt, error)
	// SubmitAll makes all of the jobs or none: none when any of the results
	// has an error.
	SubmitAll(ctx context.Context, batch []job.Submission) ([]job.Submitted, error)
	// Known reports whether the submission's key has made a job of the same
	// type and payload before.
	Known(ctx context.Context, s job.Submission) (bool, error)
	Get(ctx context.Context, id job.ID) (job.View, error)
	// Await returns the job once its state is final, or as it is when the
	// context's deadline has passed.
	Await(ctx context.Context, id job.ID) (job.View, error)
	// List returns a page of the jobs that the filter chooses.
	List(ctx context.Context, filter job.Filter) (job.Page, error)
	// Cancel ends a waiting job at once and asks a running one to stop. A
	// canceled job stays as it is; job.ErrWrongState is for those that
	// succeeded or are dead.
	Cancel(ctx context.Context, id job.ID) (job.View, error)
	// Hold keeps a scheduled job until it is released; job.ErrWrongState for
	// any job that is not in the state created.
	Hold(ctx context.Context, id job.ID) (job.View, error)
	// Release makes a created job eligible; job.ErrWrongState for any other.
	Release(ctx context.Context, id job.ID) (job.View, error)
	// Requeue gives a dead job all its attempts again; job.ErrWrongState for
	// any other.
	Requeue(ctx context.Context, id job.ID) (job.View, error)
	// Redrive requeues the dead jobs that the filter chooses, the longest
	// dead first, and returns how many.
	Redrive(ctx context.Context, filter job.DeadLetterFilter) (int, error)
	// DeadLetters lists the dead jobs that the filter chooses, newest first.
	DeadLetters(ctx context.Context, filter job.DeadLetterFilter) ([]job.DeadLetter, error)
	// TypeSpec resolves the defaults of a job type. It returns
	// job.ErrUnknownType.
	TypeSpec(ctx context.Context, jobType string) (job.TypeSpec, error)
	// Types returns every job type that a handler has ever declared, by name.
	Types(ctx context.Context) ([]job.TypeSpec, error)
	// Ping returns nil when the database answers.
	Ping(ctx context.Context) error
}

// Operations is the ledger as operators look into it. Any method can return
// job.ErrUnavailable, and the error of a context that is done.
type Operations interface {
	// Detail returns everything about a job, or job.ErrNotFound.
	Detail(ctx context.Context, id job.ID) (job.Detail, error)
	// Logs returns what the attempts of a job have logged that the filter
	// chooses, oldest first; none of a job that does not exist.
	Logs(ctx context.Context, id job.ID, filter job.LogFilter) ([]job.AttemptLog, error)
	// Workers lists the orchestrators that are known, alive or not.
	Workers(ctx context.Context) ([]job.WorkerView, error)
	// WorkerTotals counts the jobs that workers run, and those that they ended
	// within the window, by state. A window of 0 has no beginning.
	WorkerTotals(ctx context.Context, window time.Duration) (map[job.State]int64, error)
	// Queues says what waits and runs, by job type.
	Queues(ctx context.Context) ([]job.Queue, error)
	// Metrics says how the whole system stands.
	Metrics(ctx context.Context, window time.Duration) (job.Metrics, error)
	// Diagnose looks for what is wrong. It may take minutes on a large ledger.
	Diagnose(ctx context.Context) ([]job.Check, error)
}

// Plugins are the handler plugins of the orchestrator that serves the API. The
// methods that take a name return job.ErrNoPlugin, and the error of a context that
// is done before they are.
type Plugins interface {
	// Status describes every one, in the order of configuration.
	Status() []job.PluginStatus
	// Swap replaces the version that serves by what the file is now, and
	// returns how that went; with force, whatever becomes of jobs. When the
	// context is done before, the swap is as far as it has come, and goes on;
	// an empty one has not begun, and never will.
	Swap(ctx context.Context, name string, force bool) (job.PluginSwap, error)
	// Restart replaces the processes by others of the same version.
	Restart(ctx context.Context, name string) (job.PluginSwap, error)
	// Disable stops one when it has finished what it has, Enable starts it
	// again; with force, also what was rolled back or refused before.
	Disable(ctx context.Context, name string) error
	Enable(ctx context.Context, name string, force bool) error
}

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
	// Find returns the same page with what operators see of each job.
	Find(ctx context.Context, filter job.Filter) (job.FoundPage, error)
	// Lookup returns the jobs with an id or an idempotency key, newest first.
	Lookup(ctx context.Context, lookup job.Lookup) ([]job.Found, error)
	// Tree returns the job, or its first ancestor, with the jobs that descend from it.
	Tree(ctx context.Context, id job.ID, filter job.TreeFilter) (job.Tree, error)
	// Count counts the jobs that match the filter, up to job.MaxCount.
	Count(ctx context.Context, filter job.Filter) (job.Count, error)
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
	// DeadLetterGroups lists the groups of the dead jobs that match the filter's type and
	// tenant, those with the latest death first, and says whether there are more than the
	// filter's limit.
	DeadLetterGroups(ctx context.Context, filter job.DeadLetterFilter) (groups []job.DeadLetterGroup, more bool, err error)
	// TypeSpec returns the defaults of a job type, or job.ErrUnknownType.
	TypeSpec(ctx context.Context, jobType string) (job.TypeSpec, error)
	// Types returns every job type that a handler has ever declared, by name.
	Types(ctx context.Context) ([]job.TypeSpec, error)
	// Ping returns nil if the database answers.
	Ping(ctx context.Context) error
}

// Workflows are the workflows as clients use them. Every method can return
// job.ErrUnavailable, or the error of a context that is done; with job.ErrOutcomeUnknown if
// it changes something. Those that take an id can return job.ErrNoWorkflow.
type Workflows interface {
	// SubmitWorkflow makes the workflow with all of its jobs, or finds the one that an earlier
	// submission with the same key made. It returns job.ErrKeyReused and job.ErrBadData.
	SubmitWorkflow(ctx context.Context, w job.WorkflowSubmission) (job.WorkflowReceipt, error)
	// Workflows returns those that match the filter, newest first.
	Workflows(ctx context.Context, filter job.WorkflowFilter) ([]job.Workflow, error)
	Workflow(ctx context.Context, id job.ID) (job.Workflow, error)
	WorkflowDetail(ctx context.Context, id job.ID) (job.WorkflowDetail, error)
	// CancelWorkflow cancels the jobs that wait, and asks those that run to stop. If the
	// workflow has finished, it returns job.ErrWrongState. So do HoldWorkflow and
	// ReleaseWorkflow, also for one that was canceled.
	CancelWorkflow(ctx context.Context, id job.ID) error
	HoldWorkflow(ctx context.Context, id job.ID) error
	ReleaseWorkflow(ctx context.Context, id job.ID) error
	// RequeueWorkflow requeues its dead jobs, and returns how many there were.
	RequeueWorkflow(ctx context.Context, id job.ID) (int, error)
}

// Operations is the ledger as operators see it. Every method but Replica can return
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
	// Series returns what has happened to jobs of all types, or of one, slot by slot.
	Series(ctx context.Context, window v1.SeriesWindow, jobType string) (v1.Series, error)
	// Replica says how the replica of the database is used. It does not ask the database.
	Replica() v1.Replica
	// Diagnose looks for problems. It may take minutes on a large ledger.
	Diagnose(ctx context.Context) ([]job.Check, error)
}

// Events are the ends of jobs.
type Events interface {
	// Follow begins a stream of the events that match the filter: those after the id, or
	// those that are recorded from now on if it is nil. It returns job.ErrTooManyStreams,
	// job.ErrBusy, job.ErrUnavailable, or the error of a context that is done.
	Follow(ctx context.Context, filter job.EventFilter, after *int64) (job.EventStream, error)
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

// Retention deletes ended jobs when their time is over, and erases them on request. Every
// method can return job.ErrUnavailable, or the error of a context that is done; with
// job.ErrOutcomeUnknown if it changes something.
type Retention interface {
	// PlanRetention returns what would be deleted now, and by what policies. It may be
	// job.ErrBusy.
	PlanRetention(ctx context.Context) (job.RetentionPolicies, job.RetentionPlan, error)
	// Erase blanks an ended job. It returns job.ErrNotFound, and job.ErrWrongState if the job
	// has not ended. An erased job stays as it is.
	Erase(ctx context.Context, id job.ID, by, reason string) (job.View, error)
	// AskErasure begins to blank all ended jobs of a tenant.
	AskErasure(ctx context.Context, asked job.Erasure) (job.Erasure, error)
	// Erasures lists those that the filter selects, newest first.
	Erasures(ctx context.Context, filter job.ErasureFilter) ([]job.Erasure, error)
}

// Bulk acts on all jobs that match a filter. Every method can return job.ErrUnavailable, or the
// error of a context that is done; with job.ErrOutcomeUnknown if it changes something.
type Bulk interface {
	// PreviewOperation returns what an operation would act on, now or at the moment that the
	// filter names. It counts for the filter's Within, from its After on.
	PreviewOperation(ctx context.Context, filter job.Filter) (job.Preview, error)
	// StartOperation begins an operation, or finds the one that an earlier request with the
	// same key began. It returns job.ErrKeyReused.
	StartOperation(ctx context.Context, start job.OperationStart) (job.Operation, error)
	// StopOperation stops an operation of the tenant, or of any if that is empty. It acts on no
	// more jobs. It returns job.ErrNoOperation. One that has ended stays as it is.
	StopOperation(ctx context.Context, id job.ID, by, tenant string) (job.Operation, error)
	// Operations lists those that the filter selects, newest first.
	Operations(ctx context.Context, filter job.OperationFilter) ([]job.Operation, error)
}

// Schedules make jobs by the clock. Every method but Local and DueAt can return
// job.ErrUnavailable, or the error of a context that is done; with job.ErrOutcomeUnknown if
// it changes something. Those that take a name can return job.ErrNoSchedule.
type Schedules interface {
	Schedules(ctx context.Context, filter job.ScheduleFilter) ([]job.Schedule, error)
	Schedule(ctx context.Context, tenant, name string) (job.Schedule, error)
	// CheckSchedule returns what is wrong with a schedule, or how its job is refused.
	CheckSchedule(ctx context.Context, one job.Schedule) (faults []job.Fault, refused, err error)
	// SetSchedule returns job.ErrScheduleConfigured if a configuration has set the schedule. So
	// does DeleteSchedule.
	SetSchedule(ctx context.Context, one job.Schedule) (job.Schedule, error)
	DeleteSchedule(ctx context.Context, tenant, name string) error
	PauseSchedule(ctx context.Context, tenant, name, reason, by string) (job.Schedule, error)
	// ResumeSchedule ends a pause, if there is one.
	ResumeSchedule(ctx context.Context, tenant, name string) (job.Schedule, error)
	// RunSchedule makes a job now, with an idempotency key unless that is empty.
	RunSchedule(ctx context.Context, tenant, name, key string) (job.Receipt, error)
	// Backfill makes the jobs of a range of ticks, or returns job.ErrTooManyTicks.
	Backfill(ctx context.Context, tenant, name string, from, to time.Time) (job.Backfilled, error)
	// Preview returns the next ticks after an instant, or after now, or what is wrong with
	// the timing.
	Preview(ctx context.Context, timing job.Timing, after time.Time, n int) ([]time.Time, []job.Fault, error)
	// Local is a tick in its zone, and DueAt when its job is due.
	Local(timing job.Timing, tick time.Time) time.Time
	DueAt(one job.Schedule, tick time.Time) time.Time
}

// AllPlugins are the plugins of all orchestrators, as the database knows them. Every method
// can return job.ErrUnavailable, or the error of a context that is done.
type AllPlugins interface {
	// PluginEvents returns what has happened to plugins, newest first.
	PluginEvents(ctx context.Context, filter job.PluginEventFilter) ([]job.PluginEvent, error)
	// PluginsEverywhere returns the plugins of all orchestrators that have not stopped.
	PluginsEverywhere(ctx context.Context) ([]v1.Orchestrator, error)
	// CommandPlugin asks something of a plugin of all orchestrators that have it, or of those
	// that the command names. If there is none, it returns job.ErrNoPlugin.
	CommandPlugin(ctx context.Context, command job.PluginCommand) (job.PluginCommand, error)
	// PluginCommand returns a command with its outcomes, or job.ErrNoCommand.
	PluginCommand(ctx context.Context, id job.ID) (job.PluginCommand, error)
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

package v1

import (
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// OperationSpec asks for an action on all jobs that match a filter.
type OperationSpec struct {
	Action   job.Action `json:"action" enum:"requeue,cancel,hold,release,edit" doc:"What to do to each of the jobs. edit sets their priority."`
	Filter   JobFilter  `json:"filter" doc:"Which jobs. Without a state, all those that the action applies to."`
	All      bool       `json:"all,omitempty" doc:"Must be true if the filter is empty."`
	Priority *int16     `json:"priority,omitempty" minimum:"-32767" maximum:"32767" doc:"The new priority. Only for the action edit, which needs it."`
	Rate     int        `json:"rate,omitempty" minimum:"1" maximum:"10000" default:"1000" doc:"How many jobs a second at most."`
	Reason   string     `json:"reason,omitempty" maxLength:"500" doc:"Why, for the audit log."`
	FrozenAt *time.Time `json:"frozenAt,omitempty" doc:"Act on no job that was created or died after this time: that of a dry run. The default, and the latest, is now."`
	DryRun   bool       `json:"dryRun,omitempty" doc:"Only say how many jobs there are, and show some."`
	CountFor int        `json:"countMilliseconds,omitempty" minimum:"1" maximum:"10000" default:"2000" doc:"How long to count at most. After that, the count says that there are more."`
	Cursor   string     `json:"cursor,omitempty" doc:"Go on counting where a dry run has stopped: its nextCursor. Goes with the frozenAt, the action and the filter of that dry run."`
}

// JobFilter chooses jobs. Its members are the parameters of the list of jobs for operators.
type JobFilter struct {
	State         []string   `json:"state,omitempty" nullable:"false" enum:"queued,scheduled,held,retrying,running,dead" doc:"Only jobs in one of these states."`
	JobType       string     `json:"jobType,omitempty" maxLength:"200" doc:"Only jobs of this type."`
	Tenant        string     `json:"tenant,omitempty" maxLength:"200" doc:"Only jobs of this tenant."`
	Tag           string     `json:"tag,omitempty" maxLength:"100" doc:"Only jobs with this tag."`
	Worker        string     `json:"worker,omitempty" maxLength:"200" doc:"Only jobs that this worker runs, or was the last to run."`
	ErrorCode     string     `json:"errorCode,omitempty" maxLength:"200" doc:"Only jobs whose last attempt ended with this error code."`
	Fingerprint   string     `json:"fingerprint,omitempty" pattern:"^[0-9a-f]{16}$" doc:"Only dead jobs whose error has this fingerprint: see the groups of dead letters."`
	Payload       string     `json:"payload,omitempty" maxLength:"200" payloads:"withhold" doc:"Only jobs whose payload contains this text, character by character. Needs the scope payloads."`
	ParentID      *job.ID    `json:"parentId,omitempty" format:"uuid" doc:"Only jobs that this job has submitted."`
	CreatedFrom   *time.Time `json:"createdFrom,omitempty" doc:"Only jobs created at this time or later."`
	CreatedBefore *time.Time `json:"createdBefore,omitempty" doc:"Only jobs created before this time."`
}

// JobFilterOf is what operators see of a filter.
func JobFilterOf(f job.Filter) JobFilter {
	filter := JobFilter{
		JobType: f.Type, Tenant: f.Tenant, Tag: f.Tag, Worker: f.Worker, ErrorCode: f.Code, Fingerprint: f.Fingerprint, Payload: f.Payload,
		ParentID: parentOf(f.Parent),
	}
	for _, state := range f.States {
		filter.State = append(filter.State, exactNames(state, f)...)
	}
	if !f.CreatedFrom.IsZero() {
		filter.CreatedFrom = utc(&f.CreatedFrom)
	}
	if !f.CreatedBefore.IsZero() {
		filter.CreatedBefore = utc(&f.CreatedBefore)
	}
	return filter
}

// exactNames are what operators call a state.
func exactNames(state job.State, f job.Filter) (names []string) {
	switch state {
	case job.Created:
		if !f.WithoutScheduled {
			names = append(names, "scheduled")
		}
		if !f.WithoutHeld {
			names = append(names, "held")
		}
		return names
	case job.Retry:
		return []string{"retrying"}
	case job.Queued, job.Running, job.Succeeded, job.Dead, job.Canceled:
	}
	return []string{string(state)}
}

// OperationAnswer is what an operation acts on, and the operation that was started.
type OperationAnswer struct {
	Count      int        `json:"count" doc:"How many jobs match; with a cursor, how many more than the dry run before has counted."`
	More       bool       `json:"more" doc:"Whether there may be more: the count stopped when its time was over."`
	NextCursor string     `json:"nextCursor,omitempty" doc:"The cursor with which another dry run goes on counting. Absent if there are no more jobs."`
	FrozenAt   time.Time  `json:"frozenAt" doc:"Jobs that were created or died later do not match. Send it with the same filter to act on these jobs and no others."`
	Samples    []FoundJob `json:"samples" nullable:"false" doc:"The newest of them, five at most."`
	Warnings   []string   `json:"warnings" nullable:"false" doc:"What to think of first. The words may change."`
	Operation  *Operation `json:"operation,omitempty" doc:"Absent in the answer of a dry run."`
}

// Operation is one action on all jobs that match a filter.
type Operation struct {
	OperationID job.ID             `json:"operationId" format:"uuid"`
	Action      job.Action         `json:"action" enum:"requeue,cancel,hold,release,edit"`
	Filter      JobFilter          `json:"filter"`
	FrozenAt    time.Time          `json:"frozenAt" doc:"Jobs that were created or died later are left."`
	Priority    *int16             `json:"priority,omitempty" doc:"The new priority. Absent unless the action is edit."`
	Rate        int                `json:"rate" doc:"How many jobs a second at most."`
	Reason      string             `json:"reason,omitempty"`
	State       job.OperationState `json:"state" enum:"running,stopped,finished,failed"`
	Expected    int64              `json:"expected" doc:"How many jobs matched when it started."`
	More        bool               `json:"expectedMore" doc:"Whether there were more than expected says."`
	Found       int64              `json:"found" doc:"How many jobs matched when it came to them: done and skipped."`
	Done        int64              `json:"done"`
	Skipped     map[string]int64   `json:"skipped" doc:"How many jobs were left as they are, by the reason. The words may change."`
	StartedBy   string             `json:"startedBy,omitempty" doc:"The user who logged in, or a token by its name."`
	StoppedBy   string             `json:"stoppedBy,omitempty" doc:"Who stopped it. Absent unless somebody did."`
	LastError   string             `json:"lastError,omitempty" doc:"Why it has failed, or is tried again."`
	StartedAt   time.Time          `json:"startedAt"`
	UpdatedAt   time.Time          `json:"updatedAt"`
	FinishedAt  *time.Time         `json:"finishedAt,omitempty" doc:"Absent while it is running."`
}

// OperationOf is what operators see of an operation.
func OperationOf(o job.Operation) Operation {
	shown := Operation{
		OperationID: o.ID, Action: o.Action, Filter: JobFilterOf(o.Filter), FrozenAt: o.Filter.FrozenAt.UTC(), Priority: o.Priority,
		Rate: o.Rate, Reason: o.Reason, State: o.State, Expected: int64(o.Expected.Jobs), More: o.Expected.More, Found: o.Found, Done: o.Done,
		Skipped: map[string]int64{}, StartedBy: o.By, StoppedBy: o.StoppedBy, LastError: o.LastError, StartedAt: o.StartedAt.UTC(),
		UpdatedAt: o.UpdatedAt.UTC(), FinishedAt: utc(o.FinishedAt),
	}
	for why, n := range o.Skipped {
		shown.Skipped[why] = n
	}
	return shown
}

// OperationList is a list of operations.
type OperationList struct {
	Operations []Operation `json:"operations" nullable:"false" doc:"The newest first, at most 1000."`
}

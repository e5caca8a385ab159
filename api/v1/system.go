package v1

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Worker is one run of an orchestrator, from its start to its end.
type Worker struct {
	WorkerID      string              `json:"workerId" doc:"Each start has a new id."`
	Host          string              `json:"host"`
	PID           int                 `json:"pid"`
	Roles         job.Roles           `json:"roles" nullable:"false" enum:"api,worker,maintenance" doc:"What it does: serve the API, run jobs, maintain."`
	Condition     job.Condition       `json:"condition" enum:"alive,draining,drained,silent,stopped" doc:"A draining worker was asked to take no more jobs and still has some; a drained one has none. A silent worker has missed its heartbeats: it has crashed or cannot reach the database, and other workers take over its jobs."`
	StartedAt     time.Time           `json:"startedAt"`
	LastHeartbeat time.Time           `json:"lastHeartbeat"`
	StoppedAt     *time.Time          `json:"stoppedAt,omitempty"`
	Plugins       json.RawMessage     `json:"plugins" doc:"The plugins that it serves: any JSON value."`
	Jobs          map[job.State]int64 `json:"jobs" doc:"How many jobs it runs and has ended, by their exact state."`
}

// WorkerList is all workers.
type WorkerList struct {
	Workers []Worker `json:"workers" nullable:"false"`
}

// WorkerSummary adds up the jobs of all workers.
type WorkerSummary struct {
	SinceMinutes int                 `json:"sinceMinutes,omitempty" doc:"How many minutes the totals cover. Absent if they cover all time."`
	Totals       map[job.State]int64 `json:"totals" doc:"How many jobs the workers run and have ended, by their exact state."`
}

// Queue is the jobs of one type that wait, run or are dead.
type Queue struct {
	JobType             string  `json:"jobType" example:"SEND_EMAIL"`
	Queued              int64   `json:"queued" doc:"Jobs that are due, with those that wait at a limit, a turn or a pause."`
	OldestQueuedSeconds float64 `json:"oldestQueuedSeconds" doc:"How long a worker could have taken the first of them. Those that wait at a limit, a turn or a pause of their tenant do not count. 0 if there is none."`
	Scheduled           int64   `json:"scheduled" doc:"Jobs that wait until they are due."`
	Held                int64   `json:"held" doc:"Jobs that wait to be released."`
	Retrying            int64   `json:"retrying" doc:"Jobs that wait for their next attempt."`
	Running             int64   `json:"running"`
	Dead                int64   `json:"dead" doc:"Dead-lettered jobs."`
	Served              bool    `json:"served" doc:"Whether a live worker has a handler for the type."`
	Paused              bool    `json:"paused" doc:"Whether the type, its plugin or everything is paused."`
	// Waiting has every queued job once.
	Waiting map[job.WaitReason]int64 `json:"waiting" doc:"How many of the queued jobs wait for what: paused, unserved, concurrency_key, concurrency_tenant, concurrency_type, rate, turn, or claim if a worker may take them. Reasons without jobs are absent."`
}

// CountWaiting counts the queued jobs by what they wait for. parked are those that wait at
// a gate.
func (q *Queue) CountWaiting(parked map[job.WaitReason]int64) {
	q.Waiting = make(map[job.WaitReason]int64)
	rest := q.Queued
	if !q.Paused {
		for reason, jobs := range parked {
			if jobs > 0 {
				q.Waiting[reason] = jobs
				rest -= jobs
			}
		}
	}
	reason := job.WaitClaim
	switch {
	case q.Paused:
		reason = job.WaitPaused
	case !q.Served:
		reason = job.WaitUnserved
	}
	if rest > 0 {
		q.Waiting[reason] += rest
	}
}

// LimitUse is how many slots of a limit are used.
type LimitUse struct {
	Scope job.LimitScope `json:"scope" enum:"type,tenant"`
	Name  string         `json:"name"`
	Used  int64          `json:"used" doc:"Jobs that run, or are about to."`
	Slots int64          `json:"slots" doc:"How many may."`
}

// QueueList is the queues of all job types.
type QueueList struct {
	Queues   []Queue  `json:"queues" nullable:"false"`
	Unserved []string `json:"unserved" nullable:"false" doc:"Job types with jobs that wait or run, but without a live worker that has a handler."`
}

// QueueListOf returns the queues.
func QueueListOf(queues []Queue) QueueList {
	list := QueueList{Queues: queues, Unserved: []string{}}
	for _, q := range queues {
		if !q.Served && q.Queued+q.Scheduled+q.Held+q.Retrying+q.Running > 0 {
			list.Unserved = append(list.Unserved, q.JobType)
		}
	}
	return list
}

// Metrics is the state of the whole system at one moment. Prometheus has its own
// format at the same path.
type Metrics struct {
	At                          time.Time                      `json:"at"`
	StatusCounts                map[job.State]int64            `json:"statusCounts" doc:"How many jobs are in each exact state. Every state is listed."`
	ByWorker                    map[string]map[job.State]int64 `json:"byWorker" doc:"How many jobs each worker runs and has ended, by their exact state."`
	AttemptDistribution         map[int]int64                  `json:"attemptDistribution" doc:"How many jobs there are, by the number of attempts that they were charged."`
	ScheduledForRetry           int64                          `json:"scheduledForRetry" doc:"Jobs that wait for their next attempt."`
	Recent                      Recent                         `json:"recent"`
	ProcessedLastMinute         int64                          `json:"processedLastMinute" doc:"Attempts that ended in the last minute, except those that were interrupted, suspected or given back."`
	FailuresByJobType           map[string]int64               `json:"failuresByJobType" doc:"How many attempts have ever failed."`
	AvgDurationSecondsByJobType map[string]float64             `json:"avgDurationSecondsByJobType" doc:"Mean duration of all successful attempts."`
	Queues                      []Queue                        `json:"queues" nullable:"false"`
	Limits                      []LimitUse                     `json:"limits" nullable:"false" doc:"The limits of types and of tenants that have one of their own: at most 500, types first."`
	AdmissionInbox              int64                          `json:"admissionInbox" doc:"How many times slots were freed or jobs were parked that no orchestrator has looked at yet, counted up to 10000. It is empty again in a moment."`
	OldestSnapshotSeconds       float64                        `json:"oldestSnapshotSeconds" doc:"How long the oldest transaction, prepared transaction or replication slot has kept the database from cleaning up."`
	SnapshotAgeTransactions     int64                          `json:"snapshotAgeTransactions" doc:"The same, in transactions."`
}

// Recent counts what happened in the last minutes.
type Recent struct {
	SinceMinutes   int   `json:"sinceMinutes" doc:"How many minutes the counts cover."`
	Submitted      int64 `json:"submitted"`
	Succeeded      int64 `json:"succeeded"`
	Dead           int64 `json:"dead"`
	Canceled       int64 `json:"canceled"`
	FailedAttempts int64 `json:"failedAttempts" doc:"Attempts that failed, whether they were retried or not."`
	Requeued       int64 `json:"requeued" doc:"Dead jobs that were requeued."`
}

// Replica is how one orchestrator uses the replica of the database.
type Replica struct {
	Configured    bool             `json:"configured" doc:"Whether database.replica_url is set."`
	Used          bool             `json:"used" doc:"Whether lists and figures come from the replica. Otherwise they come from the primary."`
	Reason        string           `json:"reason,omitempty" doc:"Why they do not. Absent if they do."`
	LagSeconds    *float64         `json:"lagSeconds,omitempty" doc:"How old what the replica shows is at most; at least, if it is behind by more than is known. Absent until it was seen."`
	MaxLagSeconds float64          `json:"maxLagSeconds,omitempty" doc:"How old it may be: database.replica_max_lag."`
	Reads         map[string]int64 `json:"reads,omitempty" doc:"How many lists and figures were read, by the replica, or why by the primary: down, behind, foreign, conflict, failed or fresh."`
}

// Diagnosis is what the doctor found.
type Diagnosis struct {
	Severity job.Severity `json:"severity" enum:"ok,warning,problem" doc:"The worst severity of the checks."`
	Checks   []Check      `json:"checks" nullable:"false"`
}

// Check is one thing that the doctor looked at.
type Check struct {
	Name     string       `json:"name"`
	Severity job.Severity `json:"severity" enum:"ok,warning,problem"`
	Summary  string       `json:"summary"`
	Details  []string     `json:"details" nullable:"false" doc:"Examples, not all."`
	Remedy   string       `json:"remedy,omitempty" doc:"What to do. Absent if there is nothing to do."`
}

// DiagnosisOf returns the diagnosis.
func DiagnosisOf(checks []job.Check) Diagnosis {
	ranks := []job.Severity{job.Fine, job.Warning, job.Problem}
	worst := 0
	diagnosis := Diagnosis{Checks: listOf(checks, func(c job.Check) Check {
		worst = max(worst, slices.Index(ranks, c.Severity))
		return Check{Name: c.Name, Severity: c.Severity, Summary: c.Summary, Details: append([]string{}, c.Details...), Remedy: c.Remedy}
	})}
	diagnosis.Severity = ranks[worst]
	return diagnosis
}

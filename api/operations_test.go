package api_test

import (
	"context"
	"encoding/json"
	"time"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// insides is the ledger that operators see.
type insides struct {
	details map[job.ID]job.Detail
	logs    map[job.ID][]job.AttemptLog
	logged  job.LogFilter
	workers []v1.Worker
	totals  map[job.State]int64
	queues  []v1.Queue
	metrics v1.Metrics
	checks  []job.Check
	replica v1.Replica
	// window is the argument of the latest call.
	window time.Duration
	series string
	// Unless it is nil, looking is called in the middle of slow work.
	looking func(context.Context) error
}

// idle is what they see where nothing has happened yet.
func idle() insides {
	return insides{
		workers: []v1.Worker{}, totals: map[job.State]int64{}, queues: []v1.Queue{},
		metrics: v1.Metrics{
			StatusCounts: everyState(nil), ByWorker: map[string]map[job.State]int64{}, AttemptDistribution: map[int]int64{},
			FailuresByJobType: map[string]int64{}, AvgDurationSecondsByJobType: map[string]float64{}, Queues: []v1.Queue{}, Limits: []v1.LimitUse{},
		},
	}
}

// everyState adds the states that have no jobs.
func everyState(counts map[job.State]int64) map[job.State]int64 {
	all := make(map[job.State]int64)
	for _, state := range job.States() {
		all[state] = counts[state]
	}
	return all
}

func (l *ledger) look(ctx context.Context) error {
	if l.looking != nil {
		return l.looking(ctx)
	}
	return l.interrupt()
}

func (l *ledger) Detail(_ context.Context, id job.ID) (job.Detail, error) {
	if err := l.interrupt(); err != nil {
		return job.Detail{}, err
	}
	detail, found := l.details[id]
	if !found {
		return job.Detail{}, job.ErrNotFound
	}
	return detail, nil
}

func (l *ledger) Logs(_ context.Context, id job.ID, filter job.LogFilter) ([]job.AttemptLog, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.logged = filter
	return l.logs[id], l.interrupt()
}

func (l *ledger) Workers(context.Context) ([]v1.Worker, error) { return l.workers, l.interrupt() }

func (l *ledger) WorkerTotals(ctx context.Context, window time.Duration) (map[job.State]int64, error) {
	l.mu.Lock() // A page may have gone on without its figures.
	l.window = window
	l.mu.Unlock()
	return l.totals, l.look(ctx)
}

func (l *ledger) Queues(ctx context.Context) ([]v1.Queue, error) { return l.queues, l.look(ctx) }

func (l *ledger) Metrics(ctx context.Context, window time.Duration) (v1.Metrics, error) {
	l.mu.Lock()
	l.window = window
	l.mu.Unlock()
	metrics := l.metrics
	metrics.Recent.SinceMinutes = int(window.Minutes())
	return metrics, l.look(ctx)
}

func (l *ledger) Series(ctx context.Context, window v1.SeriesWindow, jobType string) (v1.Series, error) {
	l.mu.Lock()
	l.series = string(window) + " " + jobType
	l.mu.Unlock()
	wait := job.Latencies{0, 3}
	return v1.SeriesOf(window, jobType, later, birth, []v1.SeriesEvents{
		{Slot: 0, JobType: "SLEEP_JOB", Event: "submitted", Jobs: 2}, {Slot: window.Slots() - 1, JobType: "SLEEP_JOB", Event: "succeeded", Jobs: 1},
	}, []v1.SeriesLatencies{{Slot: 0, Waits: wait}}, 1), l.look(ctx)
}

func (l *ledger) Replica() v1.Replica { return l.replica }

func (l *ledger) Diagnose(ctx context.Context) ([]job.Check, error) { return l.checks, l.look(ctx) }

// waiting is a job that waits for all kinds of things at once.
func waiting(l *ledger) {
	jobIn(job.Queued)(l)
	for id, view := range l.jobs {
		l.details = map[job.ID]job.Detail{id: {View: view, RunAt: birth, MaxAttempts: 4, Timeout: time.Second, Waits: []job.Wait{
			{
				Reason: job.WaitPaused, Message: "type paused by ann: migration", Until: later,
				Pause: &job.Pause{Scope: job.PauseType, Name: "SLEEP_JOB", Reason: "migration", By: "ann", Since: birth},
			},
			{
				Reason: job.WaitRate, Message: "rate limit of key tenant/7 (100/1m), about 12 s, behind 17 jobs", Until: later,
				Gate: job.NewGate(job.GateKey, "ac/me", "tenant/7"), Used: 3, Limit: new(5),
				Rate: &job.Rate{Count: 100, Period: time.Minute, Burst: 1}, Ahead: 17,
			},
		}}}
	}
}

// busy fills the insides with one of everything.
func busy(l *ledger) {
	const fivefold = 5 * time.Second
	jobIn(job.Running)(l)
	for id, view := range l.jobs {
		view.StartedAt, view.Progress = &birth, json.RawMessage(`{"done": 1.0, "a": 1, "a": 2}`)
		view.Trace = job.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", State: "a=b"}
		l.details = map[job.ID]job.Detail{id: {
			View: view, Payload: json.RawMessage(`{"to": "<a>\u0000", "n": 12345678901234567890}`), Checkpoint: json.RawMessage(`1e400`),
			IdempotencyKey: "order-4711", Tags: []string{"urgent"}, Priority: -3, RunAt: birth, Charged: 2, MaxAttempts: 4,
			Terms:         job.Terms{ConcurrencyKey: "customer:42", ConcurrencyLimit: 3, OnConflict: job.ConflictCancelOldest, FairnessKey: "e<u"},
			Interruptions: 1, Crashes: 1, Fence: 3, Timeout: 1500 * time.Millisecond, LastError: "no <luck>", Worker: "w-2",
			Lease: &job.LeaseView{Worker: "w-2", ClaimedAt: birth, BeganAt: new(birth), ExpiresAt: later, CancelRequested: true},
			Attempts: []job.Attempt{
				{Fence: 1, Number: 1, WorkerID: "w-1", ClaimedAt: birth, EndedAt: birth.Add(fivefold), Outcome: job.Interrupted},
				{
					Fence: 2, Number: 1, WorkerID: "w-1", Plugin: "builtin", PluginVersion: "v1",
					DueAt: new(birth.Add(-fivefold)), ClaimedAt: birth, BeganAt: new(birth.Add(time.Millisecond)), DoneAt: new(birth.Add(fivefold / 4)),
					EndedAt: birth.Add(fivefold / 2), Outcome: job.Failure, Code: "E1", Error: "no <luck>", Stack: "at line 1", SpanID: "00f067aa0ba902b7",
				},
			},
		}}
	}
	for id := range l.jobs {
		l.logs = map[job.ID][]job.AttemptLog{id: {
			{Number: 1, Fence: 1, Lines: []job.LogLine{{Time: birth, Level: job.LogInfo, Message: "begun"}}},
			{Number: 1, Fence: 2, Dropped: 12, Lines: []job.LogLine{
				{Time: later, Level: job.LogError, Message: "no <luck>\x1b", Attributes: json.RawMessage(`{"n": 1.0}`), Truncated: true},
			}},
		}}
	}
	l.workers = []v1.Worker{
		{
			WorkerID: "w-2", Host: "host", PID: 7, Roles: job.AllRoles(), Condition: job.WorkerAlive, StartedAt: birth.UTC(), LastHeartbeat: later.UTC(),
			Plugins: json.RawMessage(`[{"Name": "builtin"}]`), Jobs: map[job.State]int64{job.Running: 1, job.Succeeded: 12},
		},
		{
			WorkerID: "w-1", Host: "host", PID: 6, Roles: job.Roles{job.RoleWorker}, Condition: job.WorkerStopped, StartedAt: birth.UTC(), LastHeartbeat: birth.UTC(),
			StoppedAt: new(later.UTC()), Jobs: map[job.State]int64{},
		},
	}
	l.totals = map[job.State]int64{job.Running: 1, job.Dead: 2}
	l.queues = []v1.Queue{
		{
			JobType: "SLEEP_JOB", Queued: 1, OldestQueuedSeconds: 2.5, Scheduled: 2, Held: 3, Retrying: 4, Running: 5, Dead: 6,
			Served: true, Paused: true, Waiting: map[job.WaitReason]int64{job.WaitPaused: 1},
		},
		{JobType: "A_DEAD_END", Dead: 1, Waiting: map[job.WaitReason]int64{}},
		{JobType: "NOBODYS_JOB", Held: 1, Waiting: map[job.WaitReason]int64{}},
	}
	l.metrics = v1.Metrics{
		At: later.UTC(), StatusCounts: everyState(map[job.State]int64{job.Retry: 4, job.Running: 1}),
		ByWorker:            map[string]map[job.State]int64{"w-2": l.workers[0].Jobs},
		AttemptDistribution: map[int]int64{0: 3, 2: 1, 10: 1}, ScheduledForRetry: 4,
		Recent:              v1.Recent{Submitted: 1, Succeeded: 2, Dead: 3, Canceled: 4, FailedAttempts: 5, Requeued: 6},
		ProcessedLastMinute: 7, FailuresByJobType: map[string]int64{"FAIL_JOB": 8},
		AvgDurationSecondsByJobType: map[string]float64{"SLEEP_JOB": 5}, Queues: l.queues,
		Limits: []v1.LimitUse{{Scope: job.LimitType, Name: "SLEEP_JOB", Used: 5, Slots: 6}}, AdmissionInbox: 2,
		OldestSnapshotSeconds: 5, SnapshotAgeTransactions: 9,
	}
	l.checks = []job.Check{
		{Name: "states", Severity: job.Fine, Summary: "Every job is where its state says."},
		{
			Name: "unserved_types", Severity: job.Warning, Summary: "Jobs wait for a handler that nobody has.",
			Details: []string{"NOBODYS_JOB: 1"}, Remedy: "Add a handler.",
		},
	}
}

package main

// scenario is a way to use a job queue. All systems are measured in every scenario.
type scenario struct {
	name, about string
	// share divides the number of jobs in the largest scenario.
	share int
	// fill inserts the jobs beforehand.
	fill bool
	// pinned holds an old snapshot during the whole scenario, and limits the time.
	pinned bool
	// kept brings each system as near to Holdfast's guarantees as it can be configured.
	kept  bool
	cases []task
	// holdfast is the name of the same scenario of orchestrator bench. settings are those
	// that the scenario needs besides the defaults.
	holdfast string
	settings []string
}

// task is a scenario with one setting.
type task struct {
	name string
	// times is the task's number of jobs, as a multiple of the scenario's.
	times int
	order order
	// holdfast is the beginning of the task's name in orchestrator bench.
	holdfast string
	// sweep is the name of the sweep that this task decides, if any. takes are those whose
	// winners it also uses.
	sweep string
	takes []string
}

const (
	callers      = 64
	batchCallers = 4
	batch        = 1000 // unless a sweep finds a better size
	// pinnedClasses is how many priorities the jobs have.
	pinnedClasses = 3
	pinnedLimit   = 60 // seconds
)

var scenarios = []scenario{
	{
		name: "workoff", about: "a backlog of no-op jobs",
		share: 1, fill: true, holdfast: "workoff",
		cases: []task{{name: "many at once", times: 1, order: order{Do: doWork}, holdfast: "backlog of ", sweep: sweepWork}},
	},
	{
		name: "kept", about: "the same backlog, with each system as near to Holdfast's guarantees as it can be configured",
		share: 1, fill: true, kept: true, holdfast: "workoff",
		cases: []task{{name: "many at once", times: 1, order: order{Do: doWork}, holdfast: "backlog of ", takes: []string{sweepWork}}},
	},
	{
		name: "single", about: "a backlog of no-op jobs for one worker that runs one at a time, without prefetching",
		share: 20, fill: true, holdfast: "single",
		settings: []string{"plugins.0.concurrency=1", "worker.prefetch=0s"},
		cases:    []task{{name: "one at a time", times: 1, order: order{Do: doWork, Single: true}, holdfast: "one slot"}},
	},
	{
		name: "insert", about: "jobs that are inserted and not run",
		share: 5, holdfast: "submit",
		cases: []task{
			{name: "64 callers, one job a call", times: 1, order: order{Do: doInsert, Callers: callers, Batch: 1}, holdfast: "64 clients", sweep: sweepConnections},
			{name: "4 callers, in batches", times: 2, order: order{Do: doInsert, Callers: batchCallers, Batch: batch}, holdfast: "4 clients", sweep: sweepBatches},
		},
	},
	{
		name: "life", about: "jobs that are inserted and run at the same time",
		share: 4, holdfast: "e2e",
		cases: []task{
			{
				name: "64 callers, one job a call", times: 1, order: order{Do: doLife, Callers: callers, Batch: 1}, holdfast: "64 clients",
				takes: []string{sweepWork, sweepConnections},
			},
			{
				name: "4 callers, in batches", times: 2, order: order{Do: doLife, Callers: batchCallers, Batch: batch}, holdfast: "4 clients",
				takes: []string{sweepWork}, sweep: sweepLife,
			},
		},
	},
	{
		name: "pinned", about: "a backlog of three priorities while an old snapshot is held, for a minute at most",
		share: 1, fill: true, pinned: true, holdfast: "pinned",
		cases: []task{{name: "many at once", times: 1, order: order{Do: doWork, Limit: pinnedLimit}, takes: []string{sweepWork}}},
	},
}

// jobsOf returns the number of jobs in a scenario; most is that of the largest
// scenario.
func (s scenario) jobsOf(most int) int { return max(most/s.share, 1) }

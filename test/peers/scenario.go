package main

// scenario is a way of using a job queue that all systems are measured in.
type scenario struct {
	name, about string
	// share is how many times fewer jobs there are than in the largest.
	share int
	// fill queues the jobs before.
	fill bool
	// pinned holds an old snapshot all the while, and is bounded in time.
	pinned bool
	cases  []task
	// holdfast is the scenario of orchestrator bench that does the same, and
	// settings what it needs beyond the defaults.
	holdfast string
	settings []string
}

// task is a scenario at one setting.
type task struct {
	name string
	// times is how many times the jobs of the scenario there are.
	times int
	order order
	// holdfast begins the name that orchestrator bench has for it.
	holdfast string
}

const (
	callers      = 64
	batchCallers = 4
	batch        = 1000
	// pinnedClasses is how many priorities the jobs have.
	pinnedClasses = 3
	pinnedLimit   = 60 // seconds
)

var scenarios = []scenario{
	{
		name: "workoff", about: "a backlog of no-op jobs, worked off",
		share: 1, fill: true, holdfast: "workoff",
		cases: []task{{name: "many at once", times: 1, order: order{Do: doWork}, holdfast: "backlog of "}},
	},
	{
		name: "single", about: "a backlog of no-op jobs, worked off by one worker, one at a time and none ahead",
		share: 20, fill: true, holdfast: "single",
		settings: []string{"plugins.0.concurrency=1", "worker.prefetch=0s"},
		cases:    []task{{name: "one at a time", times: 1, order: order{Do: doWork, Single: true}, holdfast: "one slot"}},
	},
	{
		name: "insert", about: "jobs that are queued and that nobody works off",
		share: 5, holdfast: "submit",
		cases: []task{
			{name: "64 callers, one job a call", times: 1, order: order{Do: doInsert, Callers: callers, Batch: 1}, holdfast: "64 clients"},
			{name: "4 callers, in batches", times: 2, order: order{Do: doInsert, Callers: batchCallers, Batch: batch}, holdfast: "4 clients"},
		},
	},
	{
		name: "life", about: "jobs that are queued and worked off at the same time",
		share: 4, holdfast: "e2e",
		cases: []task{
			{name: "64 callers, one job a call", times: 1, order: order{Do: doLife, Callers: callers, Batch: 1}, holdfast: "64 clients"},
			{name: "4 callers, in batches", times: 2, order: order{Do: doLife, Callers: batchCallers, Batch: batch}, holdfast: "4 clients"},
		},
	},
	{
		name: "pinned", about: "a backlog of three priorities, worked off while an old snapshot is held, for a minute at most",
		share: 1, fill: true, pinned: true, holdfast: "pinned",
		cases: []task{{name: "many at once", times: 1, order: order{Do: doWork, Limit: pinnedLimit}, holdfast: ""}},
	},
}

// jobsOf is how many jobs a scenario has when the largest has so many.
func (s scenario) jobsOf(most int) int { return max(most/s.share, 1) }

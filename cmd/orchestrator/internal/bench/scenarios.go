package bench

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// scenario is a way of using the orchestrator.
type scenario struct {
	name, about string
	// jobs is the number of jobs, unless the user gives another.
	jobs int
	// long scenarios run only when named.
	long bool
	do   func(ctx context.Context, r *run, jobs int) error
}

var scenarios = []scenario{
	{
		name: "workoff", jobs: 200_000, do: workOff(""),
		about: "a backlog of no-op jobs, worked off with the default settings",
	},
	{
		name: "single", jobs: 10_000, do: workOff("one slot", "worker.concurrency=1"),
		about: "a backlog of no-op jobs, worked off one at a time",
	},
	{
		name: "submit", jobs: 40_000, do: submit,
		about: "submissions over HTTP, by up to 256 clients, of jobs that nobody works off",
	},
	{
		name: "e2e", jobs: 100_000, do: endToEnd,
		about: "jobs submitted over HTTP and worked off at the same time",
	},
	{
		name: "latency", jobs: 500, do: latency,
		about: "one job at a time on an idle queue",
	},
	{
		name: "backlog", jobs: 1_000_000, do: backlog,
		about: "how long a claim takes with many jobs in the queue, and with few",
	},
	{
		name: "types", jobs: 100_000, do: manyTypes,
		about: "how long a claim for 500 job types takes, with and without unserved jobs ahead",
	},
	{
		name: "pinned", jobs: 500_000, do: pinned,
		about: "jobs of three priorities, while an old snapshot is held",
	},
	{
		name: "sleepers", jobs: 20_000, do: sleepers, long: true,
		about: "what heartbeats cost: jobs that run for minutes, all at once",
	},
	{
		name: FleetScenario, jobs: 20_000, do: fleet, long: true,
		about: "many orchestrators with many job types on one database: idle, and with jobs",
	},
}

func noops(number int) job.Submission { return Keys{}.noop(number) }

// fill queues jobs, then brings the database to rest.
func (r *run) fill(ctx context.Context, jobs int, describe func(int) job.Submission) error {
	began := time.Now()
	traced := samplingBy(r.lab.Settings)
	described := func(number int) job.Submission {
		s := describe(number)
		s.Trace = traced.of(number)
		return s
	}
	err := r.db.fill(ctx, jobs, described, func(done int) { r.lab.progress("filling", done, jobs, began) })
	if err != nil {
		return err
	}
	return r.db.rest(ctx, !r.lab.Fresh)
}

// work starts an orchestrator on the queue, and records what so many jobs cost.
func (r *run) work(ctx context.Context, name string, jobs int, settings ...string) error {
	if err := r.start(ctx, settings...); err != nil {
		return err
	}
	phase, err := r.begin(ctx)
	if err != nil {
		return err
	}
	if err := r.await(ctx, jobs); err != nil {
		return err
	}
	last, err := r.db.lastEnd(ctx)
	if err != nil {
		return err
	}
	r.record(name, "rate", "jobs/s", float64(jobs)/last.Sub(r.server.listening).Seconds())
	if err := r.finish(ctx, phase, name, jobs); err != nil {
		return err
	}
	if err := r.leftover(ctx, name); err != nil {
		return err
	}
	return r.stop(name)
}

// workOff returns a scenario that works off a backlog. The name of its case defaults to
// the size of the backlog.
func workOff(name string, settings ...string) func(context.Context, *run, int) error {
	return func(ctx context.Context, r *run, jobs int) error {
		if err := r.fill(ctx, jobs, r.lab.Keys.noop); err != nil {
			return err
		}
		name := cmp.Or(name, "backlog of "+strconv.Itoa(jobs))
		if err := r.work(ctx, name, jobs, settings...); err != nil {
			return err
		}
		return r.db.check(ctx, jobs)
	}
}

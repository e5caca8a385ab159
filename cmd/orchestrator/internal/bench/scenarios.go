package bench

import (
	"context"
	"strconv"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// scenario is a way of using the orchestrator that is measured.
type scenario struct {
	name, about string
	// jobs is how many there are, unless the user says another number.
	jobs int
	// long leaves it out unless it is asked for by name.
	long bool
	do   func(ctx context.Context, r *run, jobs int) error
}

var scenarios = []scenario{
	{
		name: "workoff", jobs: 200_000, do: workOff,
		about: "a backlog of no-op jobs, worked off with the default settings",
	},
	{
		name: "single", jobs: 10_000, do: workOffSingly,
		about: "a backlog of no-op jobs, worked off one at a time",
	},
	{
		name: "submit", jobs: 40_000, do: submit,
		about: "submissions over HTTP of jobs that nobody works off, by a number of clients",
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
		about: "the first of many jobs that are queued, against the first of few",
	},
	{
		name: "types", jobs: 100_000, do: manyTypes,
		about: "500 job types, behind jobs of a type that nobody serves, against none",
	},
	{
		name: "pinned", jobs: 500_000, do: pinned,
		about: "jobs of three priorities that pass while an old snapshot is held",
	},
	{
		name: "sleepers", jobs: 20_000, do: sleepers, long: true,
		about: "jobs that run for minutes, all at once: what heartbeats cost",
	},
}

func noops(int) job.Submission {
	return job.Submission{Type: noop, Tenant: "default", Payload: []byte("null")}
}

// fill queues jobs and lets the server come to rest.
func (r *run) fill(ctx context.Context, jobs int, describe func(int) job.Submission) error {
	began := time.Now()
	err := r.db.fill(ctx, jobs, describe, func(done int) { r.lab.progress("filling", done, jobs, began) })
	if err != nil {
		return err
	}
	return r.db.rest(ctx, !r.lab.Fresh)
}

// work starts an orchestrator on what is queued, and records what it took
// until so many jobs are over.
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

func workOff(ctx context.Context, r *run, jobs int) error {
	if err := r.fill(ctx, jobs, noops); err != nil {
		return err
	}
	if err := r.work(ctx, "backlog of "+strconv.Itoa(jobs), jobs); err != nil {
		return err
	}
	return r.db.check(ctx, jobs)
}

func workOffSingly(ctx context.Context, r *run, jobs int) error {
	if err := r.fill(ctx, jobs, noops); err != nil {
		return err
	}
	if err := r.work(ctx, "one slot", jobs, "worker.concurrency=1"); err != nil {
		return err
	}
	return r.db.check(ctx, jobs)
}

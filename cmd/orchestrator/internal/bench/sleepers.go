package bench

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	// sleepFor is how long each job runs, and restFor the part of it that is measured,
	// in which there are only heartbeats.
	sleepFor = 3 * time.Minute
	restFor  = 90 * time.Second
)

// sleepers records what it costs to keep running jobs alive.
func sleepers(ctx context.Context, r *run, jobs int) error {
	name := fmt.Sprintf("%d running", jobs)
	payload := strconv.AppendInt(nil, int64(sleepFor), 10)
	err := r.fill(ctx, jobs, func(int) job.Submission {
		return job.Submission{Type: sleep, Tenant: "default", Payload: payload}
	})
	if err != nil {
		return err
	}
	slots := strconv.Itoa(jobs)
	if err := r.start(ctx, "worker.concurrency="+slots, "plugins.0.concurrency="+slots); err != nil {
		return err
	}
	if err := r.db.awaitLeases(ctx, jobs); err != nil {
		return err
	}
	r.lab.say("sleeping")
	phase, err := r.read(ctx)
	if err != nil {
		return err
	}
	select {
	case <-time.After(restFor):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	now, err := r.read(ctx)
	if err != nil {
		return err
	}
	ofACore := func(spent time.Duration) float64 { return 100 * spent.Seconds() / now.began.Sub(phase.began).Seconds() }
	if phase.known && now.known {
		r.record(name, "PostgreSQL", "% of a core",
			ofACore(now.postgres.own+now.postgres.below-phase.postgres.own-phase.postgres.below))
		r.record(name, "orchestrator", "% of a core", ofACore(now.orchestrator.own-phase.orchestrator.own))
	}
	r.record(name, "WAL", "kB/s", float64(now.written-phase.written)/1000/now.began.Sub(phase.began).Seconds())
	if err := r.await(ctx, jobs); err != nil {
		return err
	}
	if err := r.stop(name); err != nil {
		return err
	}
	return r.db.check(ctx, jobs)
}

package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	fewJobs       = 10_000
	claims        = 90
	jobsPerClaim  = 100
	typesServed   = 500
	pinnedClasses = 3
)

// claim claims jobs as an orchestrator does, and records how long a claim takes.
func (r *run) claim(ctx context.Context, name string, types []string) error {
	r.lab.say(name)
	took := make([]time.Duration, 0, claims)
	for range claims {
		began := time.Now()
		claimed, err := r.db.ledger.Claim(ctx, "bench", types, jobsPerClaim, time.Hour)
		if err != nil {
			return err
		}
		if len(claimed) != jobsPerClaim {
			return fmt.Errorf("%d jobs claimed instead of %d", len(claimed), jobsPerClaim)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	r.record(name, "claim of 100 p50", "ms", milliseconds(percentile(took, 0.5)))
	r.record(name, "claim of 100 p99", "ms", milliseconds(percentile(took, 0.99)))
	return nil
}

func backlog(ctx context.Context, r *run, jobs int) error {
	for i, queued := range []int{fewJobs, max(jobs, fewJobs)} {
		if i > 0 {
			if err := r.renew(ctx); err != nil {
				return err
			}
		}
		if err := r.fill(ctx, queued, noops); err != nil {
			return err
		}
		if err := r.claim(ctx, fmt.Sprintf("%d queued", queued), []string{noop}); err != nil {
			return err
		}
	}
	return nil
}

func manyTypes(ctx context.Context, r *run, jobs int) error {
	types := make([]string, typesServed)
	for i := range types {
		types[i] = typeNumber(i)
	}
	ofAllTypes := func(i int) job.Submission {
		s := noops(i)
		s.Type = types[i%len(types)]
		return s
	}
	ofNobody := func(i int) job.Submission {
		s := noops(i)
		s.Type, s.Priority = unserved, 1
		return s
	}
	if err := r.fill(ctx, fewJobs, ofAllTypes); err != nil {
		return err
	}
	if err := r.claim(ctx, "500 types", types); err != nil {
		return err
	}
	if err := r.renew(ctx); err != nil {
		return err
	}
	if err := r.fill(ctx, jobs, ofNobody); err != nil {
		return err
	}
	if err := r.fill(ctx, fewJobs, ofAllTypes); err != nil {
		return err
	}
	return r.claim(ctx, fmt.Sprintf("500 types, %d unserved jobs ahead", jobs), types)
}

// pinned compares the first tenth of the jobs with the last, while a snapshot older than
// all of them prevents vacuum from cleaning up.
func pinned(ctx context.Context, r *run, jobs int) error {
	name := fmt.Sprintf("%d jobs under an old snapshot", jobs)
	err := r.fill(ctx, jobs, func(i int) job.Submission {
		s := noops(i)
		s.Priority = int16(i % pinnedClasses)
		return s
	})
	if err != nil {
		return err
	}
	release, err := r.db.pin(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := r.work(ctx, name, jobs); err != nil {
		return err
	}
	first, last, err := r.db.tenths(ctx)
	if err != nil {
		return err
	}
	if first > 0 && last > 0 {
		r.record(name, "first tenth", "jobs/s", first)
		r.record(name, "last tenth", "jobs/s", last)
		r.record(name, "last to first", "", last/first)
	}
	return r.db.check(ctx, jobs)
}

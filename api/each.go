package api

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/holdfast-jobs/holdfast/api/intake"
	"github.com/holdfast-jobs/holdfast/api/submission"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// results are the results of jobs that are stored together, but accepted or refused
// one by one.
type results struct {
	all []v1.BatchResult
	// batch contains the jobs to store, and places the index in all of each job's result.
	batch  []job.Submission
	places []int
}

func (s *submitRoutes) itemOf(line intake.Line) submission.Item {
	if line.TooLong {
		return submission.Item{Err: submission.TooLargeLine(line.Number, int(s.maxBytes))}
	}
	return submission.ParseLine(line.Text, line.Number)
}

// admitOne makes a job of an item, as if it had been sent alone, or returns the
// answer that refuses it.
func (s *submitRoutes) admitOne(ctx context.Context, item submission.Item, trace job.Trace) (job.Submission, *v1.Problem) {
	wanted, err := s.admit(ctx, item, trace)
	if err != nil {
		return job.Submission{}, problemOf(ctx, s.log, err)
	}
	wanted.OneOfMany = true
	return wanted, nil
}

func countOf(results []v1.BatchResult) (accepted, refused int) {
	for _, result := range results {
		if result.Job != nil {
			accepted++
		} else {
			refused++
		}
	}
	return accepted, refused
}

// admitTo adds an item to the results: as a job to store, or with the answer that
// refuses it, which it also returns.
func (s *submitRoutes) admitTo(ctx context.Context, g *results, item submission.Item, index int, trace job.Trace) *v1.Problem {
	wanted, refused := s.admitOne(ctx, item, trace)
	if refused == nil {
		g.batch = append(g.batch, wanted)
		g.places = append(g.places, len(g.all))
	}
	g.all = append(g.all, v1.BatchResult{Index: index, Problem: refused})
	return refused
}

// storeEach stores the admitted jobs from..to, and fills in their results.
func (s *submitRoutes) storeEach(ctx context.Context, g *results, from, to int) {
	var last error
	var answer *v1.Problem
	for begin := from; begin < to; begin += intake.GroupLines {
		end := min(begin+intake.GroupLines, to)
		for i, stored := range s.submitTogether(ctx, g.batch[begin:end]) {
			result := &g.all[g.places[begin+i]]
			if stored.Err == nil {
				result.Job = new(v1.AcceptedOf(stored.Receipt))
				continue
			}
			if last == nil || last.Error() != stored.Err.Error() { // An outage is logged once, not for every job.
				last, answer = stored.Err, problemOf(ctx, s.log, stored.Err)
			}
			result.Problem = answer
		}
	}
}

// submitTogether submits jobs at the same time, so that they are stored in one go.
// Those with the same key go one after the other, in order.
func (s *submitRoutes) submitTogether(ctx context.Context, batch []job.Submission) []job.Submitted {
	type name struct{ tenant, key string }
	results := make([]job.Submitted, len(batch))
	last := map[name]chan struct{}{}
	var all sync.WaitGroup
	for i, wanted := range batch {
		var before, done chan struct{}
		if wanted.IdempotencyKey != "" {
			named := name{wanted.Tenant, wanted.IdempotencyKey}
			before, done = last[named], make(chan struct{})
			last[named] = done
		}
		all.Go(func() {
			if before != nil {
				<-before
			}
			results[i] = s.submitOne(ctx, wanted)
			if done != nil {
				close(done)
			}
		})
	}
	all.Wait()
	return results
}

// submitOne submits a job from a goroutine of its own, where a panic would end the
// program.
func (s *submitRoutes) submitOne(ctx context.Context, wanted job.Submission) (result job.Submitted) {
	defer func() {
		if panicked := recover(); panicked != nil {
			result.Err = fmt.Errorf("submit panicked: %v\n%s", panicked, debug.Stack())
		}
	}()
	result.Receipt, result.Err = s.jobs.Submit(ctx, wanted)
	return result
}

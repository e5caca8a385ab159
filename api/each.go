package api

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"

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
		return submission.Item{Problem: submission.TooLargeLine(line.Number, int(s.maxBytes))}
	}
	return submission.Parse(line.Text, line.Number)
}

// admitOne makes a job of an item, as if it had been sent alone, or returns the
// answer that refuses it.
func (s *submitRoutes) admitOne(ctx context.Context, item submission.Item, trace job.Trace) (job.Submission, *v1.Problem) {
	s.refuseHiddenKey(&item)
	wanted, err := s.admit(ctx, item, trace)
	if err != nil {
		return job.Submission{}, problemOf(ctx, s.log, err)
	}
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

// submitTogether submits jobs of an answer that may have begun, so that a panic must not
// end it.
func (s *submitRoutes) submitTogether(ctx context.Context, batch []job.Submission) (results []job.Submitted) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err := fmt.Errorf("submit panicked: %v\n%s", panicked, debug.Stack())
			results = slices.Repeat([]job.Submitted{{Err: err}}, len(batch))
		}
	}()
	return s.jobs.SubmitEach(ctx, batch)
}

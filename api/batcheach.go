package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"sync"

	"github.com/holdfast-jobs/holdfast/api/guard"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// groupJobs is how many jobs are stored at once when each stands for itself.
const groupJobs = 500

// submitEach reads the whole batch and then stores each job for itself.
func (s *service) submitEach(ctx context.Context, e exchange, sent items) (v1.BatchResults, error) {
	g, trace := group{results: []v1.BatchResult{}}, traceOf(e.request.Header)
	for index := 0; ; index++ {
		next, err := nextOf(sent, index)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return v1.BatchResults{}, err
		}
		if err := s.admitTo(ctx, &g, next, index, trace); err != nil {
			// An array with an item that is no JSON is none itself.
			if status := refusal(err).Status; status == http.StatusBadRequest || status >= http.StatusInternalServerError {
				return v1.BatchResults{}, err
			}
		}
	}
	if len(g.batch) > 0 {
		if err := s.take(ctx, e, guard.Jobs, len(g.batch)); err != nil {
			return v1.BatchResults{}, err
		}
		allowTime(e.answer, e.request, s.requestTimeout)
		s.storeEach(ctx, &g, 0, len(g.batch))
	}
	return v1.BatchResults{Accepted: g.accepted(), Refused: len(g.results) - g.accepted(), Results: g.results}, nil
}

// group is a number of jobs that are stored together but accepted or refused
// each for itself.
type group struct {
	results []v1.BatchResult
	// batch holds what is to be stored; places say which results become of it.
	batch  []job.Submission
	places []int
}

func (g *group) accepted() int {
	n := 0
	for _, result := range g.results {
		if result.Job != nil {
			n++
		}
	}
	return n
}

// admitTo adds an item to the group: as a submission, or with the answer that
// refuses it, which it returns too.
func (s *service) admitTo(ctx context.Context, g *group, sent item, index int, trace job.Trace) error {
	result := v1.BatchResult{Index: index}
	submission, err := s.admit(ctx, sent, trace)
	if err != nil {
		result.Problem = refusal(err)
	} else {
		g.batch = append(g.batch, submission)
		g.places = append(g.places, len(g.results))
	}
	g.results = append(g.results, result)
	return err
}

// storeEach stores what was admitted to the group, from one job up to another,
// and fills in the results.
func (s *service) storeEach(ctx context.Context, g *group, from, to int) {
	var told error
	var answer *v1.Problem
	for begin := from; begin < to; begin += groupJobs {
		end := min(begin+groupJobs, to)
		for i, stored := range s.submitTogether(ctx, g.batch[begin:end]) {
			result := &g.results[g.places[begin+i]]
			switch {
			case stored.Err == nil:
				receipt := v1.AcceptedOf(stored.Receipt)
				result.Job = &receipt
			case told != nil && told.Error() == stored.Err.Error():
				result.Problem = answer
			default:
				// An outage is logged once, not for every job.
				told, answer = stored.Err, refusal(s.failSubmit(ctx, stored.Err))
				result.Problem = answer
			}
		}
	}
}

// submitTogether submits jobs at the same time, so that they are stored in one
// go. Of those that have the same key the first comes first.
func (s *service) submitTogether(ctx context.Context, batch []job.Submission) []job.Submitted {
	type name struct{ tenant, key string }
	results := make([]job.Submitted, len(batch))
	last := map[name]chan struct{}{}
	var all sync.WaitGroup
	for i, submission := range batch {
		var before, done chan struct{}
		if submission.IdempotencyKey != "" {
			named := name{submission.Tenant, submission.IdempotencyKey}
			before, done = last[named], make(chan struct{})
			last[named] = done
		}
		all.Go(func() {
			if before != nil {
				<-before
			}
			results[i] = s.submitOne(ctx, submission)
			if done != nil {
				close(done)
			}
		})
	}
	all.Wait()
	return results
}

// submitOne submits a job from a goroutine of its own, where a panic would end
// the program.
func (s *service) submitOne(ctx context.Context, submission job.Submission) (result job.Submitted) {
	defer func() {
		if panicked := recover(); panicked != nil {
			result.Err = fmt.Errorf("submit panicked: %v\n%s", panicked, debug.Stack())
		}
	}()
	result.Receipt, result.Err = s.jobs.Submit(ctx, submission)
	return result
}

package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/metrics"
)

// submitBatch bounds one insert; submitTimeout bounds one try at it.
const (
	submitBatch   = 500
	submitTimeout = 10 * time.Second
)

// submitter stores submissions in groups: while one insert is in flight, the
// submissions that arrive gather for the next. A group has one commit, so fast
// submissions, which do not wait for the disk, have groups of their own.
type submitter struct {
	store         Store
	durable, fast *batcher[pendingSubmission]
	stored        func(batch []job.Submission, results []job.Submitted)
	metrics       *metrics.Metrics
}

type pendingSubmission struct {
	job.Submission
	done chan job.Submitted
	// call is the done of the first submission of the same call.
	call chan job.Submitted
}

// newSubmitter returns a submitter that calls stored after every insert.
func newSubmitter(store Store, stored func([]job.Submission, []job.Submitted), m *metrics.Metrics) *submitter {
	s := &submitter{store: store, stored: stored, metrics: m}
	s.durable, s.fast = newBatcher(submitBatch, s.flush), newBatcher(submitBatch, s.flush)
	return s
}

// submit returns once the job is stored, or known not to be. When the context ends
// first, the error is job.ErrOutcomeUnknown if the job may have been stored.
//
// A caller that finds no insert under way makes one, and completes it even if its
// context ends, within submitTimeout.
func (s *submitter) submit(ctx context.Context, submission job.Submission) (job.Receipt, error) {
	batch := s.durable
	if submission.Fast {
		batch = s.fast
	}
	done := make(chan job.Submitted, 1)
	pending := []pendingSubmission{{Submission: submission, done: done, call: done}}
	batch.join(pending...)
	submitted := await(ctx, batch, pending)[0]
	return submitted.Receipt, submitted.Err
}

// submitEach is submit for each of the submissions. Those with the same key are stored
// in order, so all go one way: if one must wait for the disk, the fast ones do too.
func (s *submitter) submitEach(ctx context.Context, submissions []job.Submission) []job.Submitted {
	batch := s.fast
	pending := make([]pendingSubmission, len(submissions))
	for i, submission := range submissions {
		if !submission.Fast {
			batch = s.durable
		}
		pending[i] = pendingSubmission{Submission: submission, done: make(chan job.Submitted, 1)}
		pending[i].call = pending[0].done
	}
	batch.join(pending...)
	return await(ctx, batch, pending)
}

// await returns the results of the submissions of one call.
func await(ctx context.Context, batch *batcher[pendingSubmission], pending []pendingSubmission) []job.Submitted {
	results := make([]job.Submitted, len(pending))
	withdrawn := false
	for i, p := range pending {
		select {
		case results[i] = <-p.done:
			continue
		case <-ctx.Done():
		}
		if !withdrawn {
			// While the database does not answer, abandoned submissions must not pile up
			// in the batch. It is searched once: all of them together can be many.
			withdrawn = true
			batch.withdraw(func(other pendingSubmission) bool {
				mine := other.call == p.call
				if mine {
					other.done <- job.Submitted{Err: ctx.Err()}
				}
				return mine
			})
		}
		select {
		case results[i] = <-p.done:
		default:
			results[i].Err = fmt.Errorf("%w: %w", job.ErrOutcomeUnknown, ctx.Err())
		}
	}
	return results
}

func (s *submitter) flush(batch []pendingSubmission) {
	defer func() {
		if panicked := recover(); panicked != nil {
			// The goroutine that flushes may survive, and nobody may wait for ever.
			for _, p := range batch {
				select {
				case p.done <- job.Submitted{Err: fmt.Errorf("submit panicked: %v", panicked)}:
				default: // it has its answer
				}
			}
			panic(panicked)
		}
	}()
	submissions := make([]job.Submission, len(batch))
	for i, p := range batch {
		submissions[i] = p.Submission
	}
	ctx, cancel := context.WithTimeout(context.Background(), submitTimeout)
	defer cancel()
	began := time.Now()
	results := s.store.Submit(ctx, submissions)
	var failure error
	for i, result := range results {
		batch[i].done <- result
		if errors.Is(result.Err, job.ErrUnavailable) {
			failure = result.Err
		}
	}
	s.metrics.Batch(metrics.OpSubmit, len(batch), began, failure)
	s.stored(submissions, results)
}

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
	p := newPending(submission)
	batch.join(p)
	submitted := p.await(ctx, batch)
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
		pending[i] = newPending(submission)
	}
	batch.join(pending...)
	results := make([]job.Submitted, len(pending))
	for i, p := range pending {
		results[i] = p.await(ctx, batch)
	}
	return results
}

func newPending(submission job.Submission) pendingSubmission {
	return pendingSubmission{Submission: submission, done: make(chan job.Submitted, 1)}
}

func (p pendingSubmission) await(ctx context.Context, batch *batcher[pendingSubmission]) job.Submitted {
	select {
	case submitted := <-p.done:
		return submitted
	case <-ctx.Done():
		// While the database does not answer, abandoned submissions must not pile up
		// here.
		if batch.withdraw(func(other pendingSubmission) bool { return other.done == p.done }) {
			return job.Submitted{Err: ctx.Err()}
		}
		select {
		case submitted := <-p.done: // Both had happened.
			return submitted
		default:
		}
		return job.Submitted{Err: fmt.Errorf("%w: %w", job.ErrOutcomeUnknown, ctx.Err())}
	}
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

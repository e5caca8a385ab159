package runtime

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// submitBatch bounds one insert; submitTimeout bounds one try at it.
const (
	submitBatch   = 500
	submitTimeout = 10 * time.Second
)

// submitter stores submissions in groups: while one insert is in flight, the
// submissions that arrive gather for the next. Those that do not wait for the
// disk are groups of their own, since a group has one commit.
type submitter struct {
	store         Store
	durable, fast *batcher[pendingSubmission]
	queued        func()
	schedule      func(after time.Duration)
	telemetry     *telemetry
}

type pendingSubmission struct {
	job.Submission
	done chan job.Submitted
}

func newSubmitter(store Store, queued func(), schedule func(time.Duration), t *telemetry) *submitter {
	s := &submitter{store: store, queued: queued, schedule: schedule, telemetry: t}
	s.durable, s.fast = newBatcher(submitBatch, s.flush), newBatcher(submitBatch, s.flush)
	return s
}

// submit returns once the job is stored, durably unless it is Fast, or known
// not to be. When the context ends first, the error is job.ErrOutcomeUnknown if the
// job may have been stored.
// A caller that finds no insert under way makes one, and sees it through
// whatever its context says, for up to submitTimeout.
func (s *submitter) submit(ctx context.Context, submission job.Submission) (job.Receipt, error) {
	done := make(chan job.Submitted, 1)
	batch := s.durable
	if submission.Fast {
		batch = s.fast
	}
	batch.join(pendingSubmission{Submission: submission, done: done})
	select {
	case submitted := <-done:
		return submitted.Receipt, submitted.Err
	case <-ctx.Done():
		// While the database does not answer, submissions that nobody waits for
		// must not gather here.
		if batch.withdraw(func(p pendingSubmission) bool { return p.done == done }) {
			return job.Receipt{}, ctx.Err()
		}
		return job.Receipt{}, fmt.Errorf("%w: %w", job.ErrOutcomeUnknown, ctx.Err())
	}
}

func (s *submitter) flush(batch []pendingSubmission) {
	defer func() {
		if panicked := recover(); panicked != nil {
			// Whoever flushes may live on, and the others must not wait for ever.
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
	s.telemetry.batch(opSubmit, len(batch), began, failure)
	s.announce(submissions, results)
}

// announce wakes whoever acts on the jobs next.
func (s *submitter) announce(submissions []job.Submission, results []job.Submitted) {
	anyQueued := false
	for i, result := range results {
		switch {
		case result.Err != nil || result.Receipt.Replayed:
		case result.Receipt.State == job.Queued:
			anyQueued = true
		case result.Receipt.State == job.Created && !submissions[i].Hold:
			s.schedule(0) // the database knows when; let the scheduler ask it
		}
	}
	if anyQueued {
		s.queued()
	}
}

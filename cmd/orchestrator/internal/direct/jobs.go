package direct

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store"
)

// pollEnded is how often the database is asked whether an awaited job has
// ended.
const pollEnded = 250 * time.Millisecond

// Jobs is the ledger as the API sees it, in a process without a worker.
type Jobs struct {
	*store.Store
	// accept resolves types that nobody has declared; nil refuses them.
	accept func(jobType string) job.TypeSpec
	hints  *hints
	group  *group

	mu     sync.Mutex
	types  map[string]job.TypeSpec
	loaded time.Time
}

// NewJobs returns the ledger in the store. A type that nobody has declared is
// resolved by accept, or refused when that is nil.
func NewJobs(ledger *store.Store, accept func(jobType string) job.TypeSpec) *Jobs {
	return &Jobs{
		Store: ledger, accept: accept,
		hints: &hints{send: ledger.Send, last: map[job.Hint]time.Time{}},
		group: &group{store: ledger.Submit},
	}
}

// Flush sends the hints that were held back.
func (j *Jobs) Flush(ctx context.Context) { j.hints.flush(ctx) }

// Submit stores the job, together with others that are submitted meanwhile.
func (j *Jobs) Submit(ctx context.Context, s job.Submission) (job.Receipt, error) {
	submitted := j.group.submit(ctx, s)
	if submitted.Err == nil {
		j.hints.tell(ctx, job.JobsReady)
	}
	return submitted.Receipt, submitted.Err
}

// SubmitAll stores all of the jobs or none.
func (j *Jobs) SubmitAll(ctx context.Context, batch []job.Submission) ([]job.Submitted, error) {
	results, err := j.Store.SubmitAll(ctx, batch)
	if err == nil {
		j.hints.tell(ctx, job.JobsReady)
	}
	return results, err
}

// Await asks again and again: nobody tells this process of jobs that end.
func (j *Jobs) Await(ctx context.Context, id job.ID) (job.View, error) {
	ticker := time.NewTicker(pollEnded)
	defer ticker.Stop()
	view, err := j.Get(ctx, id)
	for err == nil && !view.State.Final() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
		latest, again := j.Get(ctx, id)
		if again != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return view, nil
		}
		view, err = latest, again
	}
	return view, err
}

// Cancel tells the owner of a running job.
func (j *Jobs) Cancel(ctx context.Context, id job.ID) (job.View, error) {
	canceled, err := j.Store.Cancel(ctx, id)
	switch {
	case err != nil:
	case canceled.State == job.Running:
		j.hints.tell(ctx, job.CancelAsked)
	case canceled.State == job.Canceled:
		j.hints.tell(ctx, job.JobsEnded)
	}
	return canceled.View, err
}

// Release tells the claimers.
func (j *Jobs) Release(ctx context.Context, id job.ID) (job.View, error) {
	view, err := j.Store.Release(ctx, id)
	if err == nil {
		j.hints.tell(ctx, job.JobsReady)
	}
	return view, err
}

// Requeue tells the claimers.
func (j *Jobs) Requeue(ctx context.Context, id job.ID) (job.View, error) {
	view, err := j.Store.Requeue(ctx, id)
	if err == nil {
		j.hints.tell(ctx, job.JobsReady)
	}
	return view, err
}

// Redrive tells the claimers.
func (j *Jobs) Redrive(ctx context.Context, filter job.DeadLetterFilter) (int, error) {
	requeued, err := j.Store.Redrive(ctx, filter)
	if len(requeued) > 0 {
		j.hints.tell(ctx, job.JobsReady)
	}
	return len(requeued), err
}

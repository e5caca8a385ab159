package runtime

import (
	"context"
	"time"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/jobs"
)

const (
	// sweepInterval is how often the follower looks for ends of jobs of workflows that nobody
	// has told.
	sweepInterval = time.Hour
	// sweepBatch is how many workflows are swept in one transaction.
	sweepBatch = 20
)

// workflowSweep does for workflows what following leaves undone. It belongs to the follower.
type workflowSweep struct {
	store Store
	jobs  *jobs.Service
	// next is when to sweep all of them: at once after the start.
	next time.Time
}

// cancel goes on with workflows that are being canceled: whoever began it may be gone.
func (w *workflowSweep) cancel(ctx context.Context, workflows []job.ID) error {
	for _, id := range workflows {
		try, cancel := context.WithTimeout(ctx, settleTimeout)
		err := w.jobs.EndWorkflow(try, id)
		cancel()
		if err != nil {
			return err
		}
	}
	if len(workflows) == 0 {
		return nil
	}
	return w.sweep(ctx, workflows)
}

// whenDue looks through all unfinished workflows for ends that nobody has told. Only an
// orchestrator that is too old to tell them ends jobs of a workflow without a word.
func (w *workflowSweep) whenDue(ctx context.Context) error {
	if time.Now().Before(w.next) {
		return nil
	}
	for after := (job.ID{}); ctx.Err() == nil; {
		some, err := w.store.UnfinishedWorkflows(ctx, after, sweepBatch, false)
		if err != nil {
			return err
		}
		if len(some) == 0 {
			w.next = time.Now().Add(loop.Jittered(sweepInterval))
			return w.tidy(ctx)
		}
		if err := w.sweep(ctx, some); err != nil {
			return err
		}
		after = some[len(some)-1]
	}
	return nil
}

func (w *workflowSweep) sweep(ctx context.Context, workflows []job.ID) error {
	try, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	done, err := w.store.SweepWorkflows(try, workflows)
	if err == nil {
		w.jobs.FollowedUp(done)
	}
	return err
}

// tidy deletes workflows whose jobs retention has deleted.
func (w *workflowSweep) tidy(ctx context.Context) error {
	keys := w.jobs.Retention.Policies().Default.Keys
	for after, more := (job.ID{}), true; more && ctx.Err() == nil; {
		try, cancel := context.WithTimeout(ctx, settleTimeout)
		var err error
		after, more, err = w.store.TidyWorkflows(try, after, keys)
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

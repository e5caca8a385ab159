package jobs

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/metrics"
	"github.com/holdfast-jobs/holdfast/runtime/spans"
)

// SubmitWorkflow stores a workflow with all of its jobs, or nothing, and wakes a claimer. All
// jobs have the trace of the request. Errors are those of Submit.
func (s *Service) SubmitWorkflow(ctx context.Context, w job.WorkflowSubmission) (job.WorkflowReceipt, error) {
	w.Jobs = slices.Clone(w.Jobs)
	sent := make([]*spans.Sent, 0, len(w.Jobs)+1)
	batch := make([]job.Submission, 0, len(w.Jobs)+1)
	prepare := func(one *job.Submission) {
		s.prepare(one)
		one.Fast = false
		sent = append(sent, s.Spans.Send(ctx, one))
		batch = append(batch, *one)
	}
	for i := range w.Jobs {
		prepare(&w.Jobs[i].Submission)
	}
	if w.OnComplete != nil {
		last := *w.OnComplete
		prepare(&last)
		w.OnComplete = &last
	}
	began := time.Now()
	receipt, err := s.store.SubmitWorkflow(ctx, w)
	s.Metrics.Batch(metrics.OpSubmit, len(batch), began, err)
	results := make([]job.Submitted, len(receipt.Jobs))
	for i, one := range receipt.Jobs {
		results[i] = job.Submitted{Receipt: one}
	}
	for i, one := range sent {
		switch {
		case i < len(results):
			one.Done(results[i])
		default: // refused, or a replay
			one.Done(job.Submitted{Receipt: job.Receipt{ID: batch[i].ID, Type: batch[i].Type, Replayed: err == nil}, Err: err})
		}
	}
	if err == nil {
		s.Submitted(batch, results)
	}
	return receipt, err
}

// CancelWorkflow cancels a workflow: its jobs that wait are canceled when it returns, and
// those that run are asked to stop. If the process dies meanwhile, a follower goes on.
// Errors: job.ErrNoWorkflow; job.ErrWrongState if it has finished.
func (s *Service) CancelWorkflow(ctx context.Context, id job.ID) error {
	if err := s.store.CancelWorkflow(ctx, id); err != nil {
		return err
	}
	defer s.followedEnded()
	return s.EndWorkflow(ctx, id)
}

// EndWorkflow cancels the jobs of a canceled workflow.
func (s *Service) EndWorkflow(ctx context.Context, id job.ID) error {
	for {
		canceled, err := s.store.CancelPortion(ctx, id)
		if err != nil {
			return err
		}
		if len(canceled) == 0 {
			break
		}
		for _, one := range canceled {
			s.waiters.jobEnded(one)
		}
	}
	return s.each(ctx, id, func(one job.ID) error {
		_, err := s.Cancel(ctx, one)
		return err
	}, true, job.Created, job.Queued, job.Retry)
}

// each does something with all jobs of a workflow in the states, until none is left. A job
// that is in another state by then is left alone.
func (s *Service) each(ctx context.Context, id job.ID, do func(job.ID) error, running bool, states ...job.State) error {
	for {
		some, err := s.store.OpenWorkflowJobs(ctx, id, running, states...)
		if err != nil || len(some) == 0 {
			return err
		}
		done := 0
		for _, one := range some {
			switch err := do(one); {
			case err == nil:
				done++
			case !errors.Is(err, job.ErrWrongState):
				return err
			}
		}
		if done == 0 {
			return nil
		}
	}
}

// HoldWorkflow keeps jobs of a workflow from starting until ReleaseWorkflow. Those that run,
// or wait for their next attempt, go on. Errors are those of CancelWorkflow.
func (s *Service) HoldWorkflow(ctx context.Context, id job.ID) error {
	err := s.store.HoldWorkflow(ctx, id)
	if err == nil {
		s.GatesChanged() // slots of jobs that were ready are free
	}
	return err
}

// ReleaseWorkflow ends a hold. Errors are those of CancelWorkflow.
func (s *Service) ReleaseWorkflow(ctx context.Context, id job.ID) error {
	if err := s.store.ReleaseWorkflow(ctx, id); err != nil {
		return err
	}
	done, err := s.store.SweepWorkflows(ctx, []job.ID{id})
	if err == nil {
		s.FollowedUp(done)
	}
	return err
}

// RequeueWorkflow requeues all dead jobs of a workflow, and returns how many.
func (s *Service) RequeueWorkflow(ctx context.Context, id job.ID) (requeued int, err error) {
	err = s.each(ctx, id, func(one job.ID) error {
		_, err := s.Requeue(ctx, one)
		if err == nil {
			requeued++
		}
		return err
	}, false, job.Dead)
	return requeued, err
}

package jobs

import (
	"context"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Await returns the job once its state is final, or as it is when the context's
// deadline has passed. It returns job.ErrNotFound, and the context's error when it
// was canceled.
func (s *Service) Await(ctx context.Context, id job.ID) (job.View, error) {
	return s.waiters.await(ctx, id)
}

// Cancel ends a waiting job at once, and asks the worker of a running one to stop
// its handler without waiting for the next heartbeat.
func (s *Service) Cancel(ctx context.Context, id job.ID) (job.View, error) {
	asked := time.Now()
	canceled, err := s.store.Cancel(ctx, id)
	if err == nil {
		s.canceled(canceled)
	}
	if canceled.Canceled || canceled.Requested {
		s.Spans.Canceled(ctx, canceled.View, asked)
	}
	return canceled.View, err
}

// Release makes a created job eligible and wakes a claimer.
func (s *Service) Release(ctx context.Context, id job.ID) (job.View, error) {
	view, err := s.store.Release(ctx, id)
	if err == nil {
		s.queued()
	}
	return view, err
}

// Requeue gives a dead job all its attempts again and wakes a claimer.
func (s *Service) Requeue(ctx context.Context, id job.ID) (job.View, error) {
	asked := time.Now()
	view, err := s.store.Requeue(ctx, id)
	if err == nil {
		s.requeued(ctx, []job.Requeued{{ID: id, Type: view.Type, Tenant: view.Tenant, Trace: view.Trace}}, asked)
	}
	return view, err
}

// Redrive requeues the dead jobs that the filter chooses, wakes a claimer, and
// returns how many there were.
func (s *Service) Redrive(ctx context.Context, filter job.DeadLetterFilter) (int, error) {
	asked := time.Now()
	requeued, err := s.store.Redrive(ctx, filter)
	s.requeued(ctx, requeued, asked)
	return len(requeued), err
}

// Edit changes a job that waits, and wakes whoever acts on it next. For a job that runs
// or has ended, it returns job.ErrWrongState, and the job as it is.
func (s *Service) Edit(ctx context.Context, id job.ID, edit job.Edit) (job.View, error) {
	asked := time.Now()
	view, gated, err := s.store.Edit(ctx, id, edit)
	if err == nil {
		s.edited(ctx, []job.Edited{{ID: id, Type: view.Type, Tenant: view.Tenant, State: view.State, Trace: view.Trace, Gated: gated}}, asked)
	}
	return view, err
}

// EditAll changes the jobs of a page of a list of jobs that wait, and wakes whoever acts
// on them next.
func (s *Service) EditAll(ctx context.Context, filter job.Filter, edit job.Edit) (job.EditPage, error) {
	asked := time.Now()
	page, err := s.store.EditAll(ctx, filter, edit)
	s.edited(ctx, page.Edited, asked)
	return page, err
}

package jobs

import (
	"context"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/metrics"
)

// PreviewOperation returns what an operation would act on now.
func (s *Service) PreviewOperation(ctx context.Context, filter job.Filter) (job.Preview, error) {
	return s.store.PreviewOperation(ctx, filter)
}

// StartOperation begins an operation, and wakes the operator of this process. That of another
// one finds it soon. A request with a key that was used for another one is job.ErrKeyReused.
func (s *Service) StartOperation(ctx context.Context, start job.OperationStart) (job.Operation, error) {
	started, err := s.store.StartOperation(ctx, start)
	if err == nil {
		s.maintenanceAsked(s.Operating)
	}
	return started, err
}

// StopOperation stops an operation of the tenant, or of any if that is empty. It acts on no
// more jobs. Errors: job.ErrNoOperation.
func (s *Service) StopOperation(ctx context.Context, id job.ID, by, tenant string) (job.Operation, error) {
	return s.store.StopOperation(ctx, id, by, tenant)
}

// Operations returns the operations that the filter selects, newest first.
func (s *Service) Operations(ctx context.Context, filter job.OperationFilter) ([]job.Operation, error) {
	return s.store.Operations(ctx, filter)
}

// Operated measures a portion of an operation, and wakes whoever acts next on its jobs. The
// database was asked for it at the moment given.
func (s *Service) Operated(ctx context.Context, done job.PortionDone, asked time.Time) {
	action := done.Operation.Action
	s.Metrics.Operated(action, metrics.OperationDone, int64(done.Acted))
	s.Metrics.Operated(action, metrics.OperationSkipped, int64(done.Found-done.Acted))
	s.requeued(ctx, done.Requeued, asked)
	s.edited(ctx, done.Edited, asked)
	if done.Released > 0 {
		s.queued()
	}
	for _, one := range done.Canceled {
		s.canceled(one)
		if one.Canceled || one.Requested {
			s.Spans.Canceled(ctx, one.View, asked)
		}
	}
}

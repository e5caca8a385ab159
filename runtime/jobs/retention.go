package jobs

import (
	"context"
	"sync/atomic"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Retention is by what this process deletes jobs. It can be replaced while the deleter works.
type Retention struct {
	policies atomic.Pointer[job.RetentionPolicies]
	// Changed is raised when the policies were replaced.
	Changed loop.Signal
}

func newRetention(policies job.RetentionPolicies) *Retention {
	r := &Retention{Changed: loop.NewSignal()}
	r.policies.Store(&policies)
	return r
}

// Policies are those in force.
func (r *Retention) Policies() job.RetentionPolicies { return *r.policies.Load() }

// Set replaces the policies.
func (r *Retention) Set(policies job.RetentionPolicies) {
	r.policies.Store(&policies)
	r.Changed.Raise()
}

// PlanRetention returns what the deleter of this process would do now, with its policies.
func (s *Service) PlanRetention(ctx context.Context) (job.RetentionPolicies, job.RetentionPlan, error) {
	policies := s.Retention.Policies()
	plan, err := s.store.PlanRetention(ctx, policies)
	return policies, plan, err
}

// Erase blanks an ended job on behalf of somebody. Errors: job.ErrNotFound, and
// job.ErrWrongState if the job has not ended.
func (s *Service) Erase(ctx context.Context, id job.ID, by, reason string) (job.View, error) {
	return s.store.Erase(ctx, id, by, reason)
}

// AskErasure asks for the erasure of all ended jobs of a tenant, and wakes the eraser of this
// process. That of another one finds it soon.
func (s *Service) AskErasure(ctx context.Context, asked job.Erasure) (job.Erasure, error) {
	erasure, err := s.store.AskErasure(ctx, asked)
	if err == nil {
		s.maintenanceAsked(s.Erasing)
	}
	return erasure, err
}

// Erasures returns the erasures that the filter selects, newest first.
func (s *Service) Erasures(ctx context.Context, filter job.ErasureFilter) ([]job.Erasure, error) {
	return s.store.Erasures(ctx, filter)
}

package jobs

import (
	"context"
	"time"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Submitted wakes whoever acts next on the jobs, which are in the database now. Those that
// Submit and its relatives store need no call.
func (s *Service) Submitted(batch []job.Submission, results []job.Submitted) {
	var queued []string // their types, for what claims them
	parked := false
	for i, result := range results {
		if result.Err != nil || result.Receipt.Replayed || result.Receipt.Duplicate {
			continue
		}
		switch {
		case batch[i].TTL > 0:
			s.expireIn(batch[i].TTL)
		case !batch[i].ExpiresAt.IsZero():
			s.expireIn(time.Until(batch[i].ExpiresAt)) // polls find it if the clocks differ
		}
		switch {
		case result.Receipt.State == job.Queued && len(batch[i].Gates) > 0:
			parked = true
		case result.Receipt.State == job.Queued:
			if len(queued) == 0 || queued[len(queued)-1] != batch[i].Type {
				queued = append(queued, batch[i].Type)
			}
		case result.Receipt.State == job.Created && !batch[i].Hold:
			s.dueIn(0) // only the database knows when: the scheduler asks it
		}
	}
	if len(queued) > 0 {
		s.Hints.Offer(queued)
	}
	if parked {
		s.GatesChanged()
	}
}

// Admits returns the signal of the loop that admits jobs in this process. Call it before
// Run. Without such a loop, other processes are told of what happens at gates.
func (s *Service) Admits() loop.Signal {
	s.admits = true
	return s.Hints.Heard(job.GatesChanged)
}

// GatesChanged wakes whoever admits jobs: one process is enough.
func (s *Service) GatesChanged() {
	if s.admits {
		s.Hints.Heard(job.GatesChanged).Raise()
	} else {
		s.Hints.Send(job.GatesChanged)
	}
}

// Follows returns the signal of the loop that follows ended jobs up in this process. Call it
// before Run. Without such a loop, other processes are told of ends.
func (s *Service) Follows() loop.Signal {
	s.follows = true
	return s.Hints.Heard(job.FollowedEnded)
}

// followedEnded wakes whoever follows ended jobs up: one process is enough.
func (s *Service) followedEnded() {
	if s.follows {
		s.Hints.Heard(job.FollowedEnded).Raise()
	} else {
		s.Hints.Send(job.FollowedEnded)
	}
}

// DeliveryPlan is how ends are announced to callback URLs now. Its type is nil if this process
// knows of no plugin that has declared that of deliveries.
func (s *Service) DeliveryPlan() job.DeliveryPlan {
	plan := job.DeliveryPlan{Rules: s.Rules(), Cell: s.cfg.Cell}
	if spec, known, _ := s.JobTypes.lookUp(job.DeliveryType); known {
		plan.Type = &spec
	}
	return plan
}

// FollowedUp measures a round of the follower, and wakes whoever acts next on what it has
// made.
func (s *Service) FollowedUp(done job.Following) {
	s.Metrics.FollowedUp(done)
	if done.Delivered.Ready {
		s.Hints.Announce(job.JobsReady)
	}
	if done.Delivered.Parked {
		s.GatesChanged()
	}
	if done.Recorded > 0 {
		s.Hints.Announce(job.EventsRecorded)
	}
	if done.Due > 0 {
		s.dueIn(0)
	}
	for _, id := range done.Canceled {
		s.waiters.jobEnded(id)
	}
	for _, finished := range done.Workflows {
		s.Metrics.WorkflowFinished(finished.State)
	}
}

// Admitted measures a round of admission, and wakes whoever acts next on its jobs.
func (s *Service) Admitted(done job.Admission) {
	s.Metrics.Admitted(done.Admitted)
	if len(done.Admitted) > 0 {
		s.Hints.Announce(job.JobsReady)
	}
	if done.CancelAsked > 0 {
		s.Hints.Announce(job.CancelAsked)
	}
	for _, id := range done.Canceled {
		s.waiters.jobEnded(id)
	}
	if len(done.Canceled) > 0 {
		s.followedEnded()
	}
}

// queued wakes whoever acts next on jobs that are due now: they are on the ready list, or
// wait at a gate.
func (s *Service) queued() {
	s.Hints.Announce(job.JobsReady)
	s.GatesChanged()
}

// Settled wakes whoever acts next on a job that a worker has settled.
func (s *Service) Settled(lease *job.Lease, settled *job.Decision) {
	if lease.Gated {
		s.GatesChanged()
	}
	switch settled.To {
	case job.Retry:
		s.dueIn(settled.Delay)
	case job.Queued:
		s.Hints.Announce(job.JobsReady)
	case job.Succeeded, job.Dead, job.Canceled:
		s.waiters.jobEnded(lease.JobID)
		if lease.Followed {
			s.followedEnded()
		}
	case job.Created, job.Running:
	}
}

// Lapsed says that the jobs were canceled because they had not started by their time,
// which the database was asked for at the moment given.
func (s *Service) Lapsed(jobs []job.Lapsed, asked time.Time) {
	freed := false
	for _, one := range jobs {
		s.waiters.jobEnded(one.ID)
		s.Metrics.Expired(one.Type)
		s.Spans.Lapsed(one, asked)
		freed = freed || one.Freed
	}
	if freed {
		s.GatesChanged()
	}
	if len(jobs) > 0 {
		s.followedEnded()
	}
}

// canceled wakes whoever acts next on a job that was canceled, or whose worker was asked to
// stop it.
func (s *Service) canceled(done job.Cancellation) {
	if done.State == job.Running {
		s.Hints.Announce(job.CancelAsked)
	}
	if done.State == job.Canceled {
		s.waiters.jobEnded(done.ID)
		s.GatesChanged()
		if done.Followed {
			s.followedEnded()
		}
	}
}

func (s *Service) requeued(ctx context.Context, jobs []job.Requeued, asked time.Time) {
	if len(jobs) > 0 {
		s.queued()
	}
	for _, one := range jobs {
		s.Spans.Requeued(ctx, one, asked)
	}
}

func (s *Service) edited(ctx context.Context, jobs []job.Edited, asked time.Time) {
	queued, scheduled, gated := false, false, false
	for _, one := range jobs {
		queued = queued || one.State == job.Queued
		scheduled = scheduled || one.State != job.Queued
		gated = gated || one.Gated
		s.Spans.Edited(ctx, one, asked)
	}
	if gated {
		s.GatesChanged()
	}
	if queued {
		s.Hints.Announce(job.JobsReady)
	}
	if scheduled {
		s.dueIn(0) // only the database knows when: the scheduler asks it
	}
}

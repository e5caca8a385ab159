package jobs

import (
	"context"
	"time"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// heedFor is how long the loops that heed hints wait for one. Nothing depends on it.
const heedFor = time.Hour

// Maintains says that the loops which maintain run in this process. Call it before Run.
// Without them, other processes are told of what these loops would find late by polling.
func (s *Service) Maintains() { s.maintains = true }

// dueIn wakes whoever queues jobs that have become due, if he would sleep past the time given
// from now.
func (s *Service) dueIn(after time.Duration) {
	switch {
	case s.maintains:
		s.Due.In(after)
	case after < s.cfg.PollInterval:
		s.Hints.Send(job.TimersSet)
	}
}

// expireIn does the same for jobs that expire.
func (s *Service) expireIn(after time.Duration) {
	switch {
	case s.maintains:
		s.Expiry.In(after)
	case after < s.cfg.PollInterval:
		s.Hints.Send(job.MaintenanceAsked)
	}
}

// maintenanceAsked wakes a loop that maintains: that of this process, or of all others.
func (s *Service) maintenanceAsked(alarm *loop.Alarm) {
	if s.maintains {
		alarm.In(0)
	} else {
		s.Hints.Send(job.MaintenanceAsked)
	}
}

// heedTimers wakes the scheduler when another process says that a job will be due soon.
func (s *Service) heedTimers(ctx context.Context) {
	for s.Hints.Heard(job.TimersSet).Wait(ctx, heedFor) {
		s.Due.In(0)
	}
}

// heedMaintenance wakes the loops that another process has something to do for.
func (s *Service) heedMaintenance(ctx context.Context) {
	for s.Hints.Heard(job.MaintenanceAsked).Wait(ctx, heedFor) {
		for _, alarm := range []*loop.Alarm{s.Expiry, s.Ticks, s.Operating, s.Erasing} {
			alarm.In(0)
		}
	}
}

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

// wakeIn has a loop that maintains look after the time given: that of this process, or those
// of others by the hint, unless their lookouts find it sooner.
func (s *Service) wakeIn(after time.Duration, alarm *loop.Alarm, hint job.Hint) {
	switch {
	case s.maintains:
		alarm.In(after)
	case after < s.Pace.Longest(s.cfg.PollInterval):
		s.Hints.Send(hint)
	}
}

// dueIn says that a job becomes due after the time given.
func (s *Service) dueIn(after time.Duration) { s.wakeIn(after, s.Due, job.TimersSet) }

// expireIn says that a job expires after the time given.
func (s *Service) expireIn(after time.Duration) { s.wakeIn(after, s.Expiry, job.MaintenanceAsked) }

// maintenanceAsked says that the loop of the alarm has something to do now.
func (s *Service) maintenanceAsked(alarm *loop.Alarm) { s.wakeIn(0, alarm, job.MaintenanceAsked) }

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

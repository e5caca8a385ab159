package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/schedule"
)

// ScheduleStore is what schedules need of the database.
type ScheduleStore interface {
	Now(ctx context.Context) (time.Time, error)
	Schedule(ctx context.Context, tenant, name string) (job.Schedule, error)
	Schedules(ctx context.Context, filter job.ScheduleFilter) ([]job.Schedule, error)
	SetSchedule(ctx context.Context, set job.Schedule) error
	SyncSchedules(ctx context.Context, all []job.Schedule) ([]job.ScheduleChange, error)
	DeleteSchedule(ctx context.Context, tenant, name string) error
	PauseSchedule(ctx context.Context, tenant, name, reason, by string) error
	ResumeSchedule(ctx context.Context, read job.Schedule, next time.Time) (ended bool, err error)
}

const (
	// resumeTries is how often a schedule is resumed that others change meanwhile.
	resumeTries = 5
	// backfillBatch bounds the jobs that a backfill makes at once.
	backfillBatch = 500
)

// Schedule returns a schedule, or job.ErrNoSchedule.
func (s *Service) Schedule(ctx context.Context, tenant, name string) (job.Schedule, error) {
	return s.store.Schedule(ctx, tenant, name)
}

// Schedules returns a page of schedules.
func (s *Service) Schedules(ctx context.Context, filter job.ScheduleFilter) ([]job.Schedule, error) {
	return s.store.Schedules(ctx, filter)
}

// CheckSchedule returns what is wrong with a schedule, and how the API refuses its job: nil
// if both are as they should be. The error says that it cannot be checked now.
func (s *Service) CheckSchedule(ctx context.Context, one job.Schedule) (faults []job.Fault, refused, err error) {
	ticks, faults := schedule.Check(one)
	if len(faults) > 0 {
		return faults, nil, nil
	}
	now, err := s.store.Now(ctx)
	if err != nil {
		return nil, nil, err
	}
	if ticks.After(now).IsZero() {
		found, err := s.store.Schedule(ctx, one.Tenant, one.Name)
		switch {
		case err != nil && !errors.Is(err, job.ErrNoSchedule):
			return nil, nil, err
		case err != nil || found.Timing != one.Timing: // the same again is no mistake
			member := "endsAt"
			if !one.Timing.At.IsZero() {
				member = "at"
			}
			return []job.Fault{{Member: member, Reason: "leaves no tick in the future"}}, nil, nil
		}
	}
	_, err = s.acceptTick(ctx, one, now.Truncate(time.Second))
	if transient(err) {
		return nil, nil, err
	}
	return nil, err, nil
}

// SetSchedule sets a schedule, which CheckSchedule has found right, and returns it as it is
// then. Its next tick is in the future, unless the timing has not changed. Errors:
// job.ErrScheduleConfigured if the configuration has set it.
func (s *Service) SetSchedule(ctx context.Context, one job.Schedule) (job.Schedule, error) {
	if err := s.nextTick(ctx, &one); err != nil {
		return job.Schedule{}, err
	}
	if err := s.store.SetSchedule(ctx, one); err != nil {
		return job.Schedule{}, err
	}
	s.maintenanceAsked(s.Ticks) // only the database knows when
	return s.store.Schedule(ctx, one.Tenant, one.Name)
}

// nextTick sets the next tick from now on.
func (s *Service) nextTick(ctx context.Context, one *job.Schedule) error {
	ticks, faults := schedule.New(one.Timing)
	if len(faults) > 0 {
		return fmt.Errorf("schedule %s: %s %s", one.Name, faults[0].Member, faults[0].Reason)
	}
	now, err := s.store.Now(ctx)
	one.NextAt = ticks.After(now)
	return err
}

// SyncSchedules makes these schedules the ones that the configuration sets. It logs each
// that this sets, changes or deletes, and warns of those that somebody else has set: they
// stay as they are.
func (s *Service) SyncSchedules(ctx context.Context, all []job.Schedule) error {
	for i := range all {
		if err := s.nextTick(ctx, &all[i]); err != nil {
			return err
		}
	}
	changed, err := s.store.SyncSchedules(ctx, all)
	if err != nil {
		return err
	}
	for _, one := range changed {
		log := s.cfg.Log.With(slog.String("tenant", one.Tenant), slog.String("schedule", one.Name), slog.String("by", "configuration"))
		switch one.Done {
		case job.ScheduleSet:
			log.InfoContext(ctx, "schedule set")
		case job.ScheduleDeleted:
			log.InfoContext(ctx, "schedule deleted")
		case job.ScheduleKept:
			log.WarnContext(ctx, "schedule not set: it exists, and was not set by the configuration; delete it, or give this one another name")
		}
	}
	s.maintenanceAsked(s.Ticks)
	return nil
}

// DeleteSchedule deletes a schedule; its jobs stay. Errors: job.ErrNoSchedule, or
// job.ErrScheduleConfigured if the configuration has set it.
func (s *Service) DeleteSchedule(ctx context.Context, tenant, name string) error {
	return s.store.DeleteSchedule(ctx, tenant, name)
}

// PauseSchedule keeps a schedule from having ticks. Errors: job.ErrNoSchedule.
func (s *Service) PauseSchedule(ctx context.Context, tenant, name, reason, by string) (job.Schedule, error) {
	if err := s.store.PauseSchedule(ctx, tenant, name, reason, by); err != nil {
		return job.Schedule{}, err
	}
	return s.store.Schedule(ctx, tenant, name)
}

// ResumeSchedule ends the pause of a schedule. Ticks during the pause are not caught up. It
// is no error if the schedule is not paused. Errors: job.ErrNoSchedule.
func (s *Service) ResumeSchedule(ctx context.Context, tenant, name string) (job.Schedule, error) {
	for range resumeTries {
		found, err := s.store.Schedule(ctx, tenant, name)
		if err != nil || found.Pause == nil {
			return found, err
		}
		if err := s.nextTick(ctx, &found); err != nil {
			return job.Schedule{}, err
		}
		ended, err := s.store.ResumeSchedule(ctx, found, found.NextAt)
		if err != nil {
			return job.Schedule{}, err
		}
		if ended {
			s.maintenanceAsked(s.Ticks)
			return s.store.Schedule(ctx, tenant, name)
		}
	}
	return job.Schedule{}, fmt.Errorf("resume schedule: others change it all the time: %w", job.ErrUnavailable)
}

// RunSchedule makes a job of a schedule now, whatever its ticks, its overlap and its pause
// are, and without a trace in the schedule: ticks do not overlap with it. The key is that of
// the request; empty for none. Errors: job.ErrNoSchedule, those of
// Accept and those of Submit.
func (s *Service) RunSchedule(ctx context.Context, tenant, name, key string) (job.Receipt, error) {
	found, err := s.store.Schedule(ctx, tenant, name)
	if err != nil {
		return job.Receipt{}, err
	}
	now, err := s.store.Now(ctx)
	if err != nil {
		return job.Receipt{}, err
	}
	one, err := s.acceptTick(ctx, found, now.Truncate(time.Second))
	if err != nil {
		return job.Receipt{}, err
	}
	one.IdempotencyKey, one.RunAt = key, time.Time{}
	one.Asked = found.Job // The scheduled time of a repeated request may be another.
	return s.Submit(ctx, one)
}

// Backfill makes the jobs of all ticks from one instant to another, both included, that have
// none yet. Overlap and pause do not matter. It stops at the first tick that can make no
// job; what it has done stays done, and doing it again makes no second job. Errors:
// job.ErrNoSchedule, job.ErrTooManyTicks, and those of RunSchedule.
func (s *Service) Backfill(ctx context.Context, tenant, name string, from, to time.Time) (done job.Backfilled, err error) {
	found, err := s.store.Schedule(ctx, tenant, name)
	if err != nil {
		return done, err
	}
	ticks, faults := schedule.New(found.Timing)
	if len(faults) > 0 {
		return done, fmt.Errorf("schedule %s: %s", name, faults[0].Reason)
	}
	all := ticks.Between(from, to, job.MaxBackfill+1)
	if len(all) > job.MaxBackfill {
		return done, job.ErrTooManyTicks
	}
	done.Ticks = len(all)
	for len(all) > 0 {
		n := min(len(all), backfillBatch)
		batch := make([]job.Submission, n)
		for i, tick := range all[:n] {
			if batch[i], err = s.acceptTick(ctx, found, tick); err != nil {
				return done, err
			}
		}
		for i, result := range s.SubmitEach(ctx, batch) {
			switch {
			case errors.Is(result.Err, job.ErrKeyReused), result.Err == nil && result.Receipt.Replayed:
				done.Found++
			case result.Err != nil:
				return done, fmt.Errorf("backfill of %s: %w", all[i].Format(time.RFC3339), result.Err)
			case result.Receipt.Duplicate:
				done.Skipped++
			default:
				done.Made++
			}
		}
		all = all[n:]
	}
	return done, nil
}

// Preview returns the first n ticks after an instant, the zero time for now, and what is
// wrong with the timing, if anything is.
func (s *Service) Preview(ctx context.Context, timing job.Timing, after time.Time, n int) ([]time.Time, []job.Fault, error) {
	ticks, faults := schedule.New(timing)
	if len(faults) > 0 {
		return nil, faults, nil
	}
	if after.IsZero() {
		now, err := s.store.Now(ctx)
		if err != nil {
			return nil, nil, err
		}
		after = now
	}
	return ticks.Following(after, n), nil, nil
}

// Local is the tick in the zone of the timing.
func (s *Service) Local(timing job.Timing, tick time.Time) time.Time {
	return schedule.Local(timing, tick)
}

// DueAt is when the job of a tick is due.
func (s *Service) DueAt(one job.Schedule, tick time.Time) time.Time {
	return tick.Add(schedule.Jitter(one.Tenant, one.Name, tick, one.Jitter))
}

// AcceptTick makes the submission of a tick, with the span that begins its trace. An error
// for which transient is false says why the tick can make no job, whenever it is tried.
func (s *Service) AcceptTick(ctx context.Context, of job.Schedule, tick time.Time) (made job.TickJob, isTransient bool, err error) {
	one, err := s.acceptTick(ctx, of, tick)
	if err != nil {
		return job.TickJob{}, transient(err), err
	}
	sent := s.Spans.SendTick(&one, of.Name, tick)
	return job.TickJob{Tick: tick, Submission: one, Done: sent.Done}, false, nil
}

// acceptTick adds the scheduled time to the payload if the job type allows that.
func (s *Service) acceptTick(ctx context.Context, of job.Schedule, tick time.Time) (job.Submission, error) {
	text, added := schedule.WithScheduledTime(of.Job, tick)
	one, err := s.Accept(ctx, text, of.Tenant, job.Trace{})
	if added && err != nil && !transient(err) {
		one, err = s.Accept(ctx, of.Job, of.Tenant, job.Trace{})
	}
	if err != nil {
		return job.Submission{}, err
	}
	schedule.Complete(of, tick, &one)
	s.prepare(&one)
	one.Fast = false // its commit is that of the schedule
	return one, nil
}

// transient reports whether another try may go better: the error is no refusal.
func transient(err error) bool {
	const serverError = 500
	var refusal interface{ GetStatus() int }
	return err != nil && (!errors.As(err, &refusal) || refusal.GetStatus() >= serverError)
}

// Refusal says why Accept refuses a submission, with the first place that is wrong.
func Refusal(err error) string {
	var refusal interface{ Places() string }
	if errors.As(err, &refusal) && refusal.Places() != "" {
		return refusal.Places()
	}
	return err.Error()
}

// Fired measures what became of the ticks of a round, and wakes whoever acts next.
func (s *Service) Fired(fired []job.Fired) {
	for _, one := range fired {
		batch := make([]job.Submission, len(one.Firing.Jobs))
		for i, made := range one.Firing.Jobs {
			batch[i] = made.Submission
			if made.Done != nil {
				made.Done(one.Results[i])
			}
		}
		s.Submitted(batch, one.Results)
		if one.Canceled != nil {
			s.canceled(*one.Canceled)
		}
	}
}

package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// scheduleRow is a schedule.
type scheduleRow struct {
	Tenant        string
	Name          string
	Cron          pgtype.Text
	Zone          string
	Every         pgtype.Interval
	Anchor        pgtype.Timestamptz
	OnceAt        pgtype.Timestamptz
	StartsAt      pgtype.Timestamptz
	EndsAt        pgtype.Timestamptz
	Jitter        pgtype.Interval
	Overlap       string
	CatchUp       string
	CatchUpWindow pgtype.Interval
	Job           json.RawMessage
	NextAt        pgtype.Timestamptz
	PausedAt      pgtype.Timestamptz
	PausedBy      string
	PauseReason   string
	LastTick      pgtype.Timestamptz
	LastJob       *job.ID
	LastError     pgtype.Text
	LastErrorAt   pgtype.Timestamptz
	Fired         int64
	Skipped       int64
	Missed        int64
	Failed        int64
	Configured    bool
	CreatedAt     time.Time
	UpdatedBy     string
	UpdatedAt     time.Time
}

// shownRow is a schedule with the state of its last job.
type shownRow struct {
	scheduleRow
	LastState pgtype.Text
}

func (r shownRow) schedule() job.Schedule {
	found := r.scheduleRow.schedule()
	found.LastJobState = job.State(r.LastState.String)
	return found
}

func (r scheduleRow) schedule() job.Schedule {
	found := job.Schedule{
		Tenant: r.Tenant, Name: r.Name,
		Timing: job.Timing{
			Cron: r.Cron.String, Zone: r.Zone, Every: postgres.Duration(r.Every), Anchor: inUTC(r.Anchor), At: inUTC(r.OnceAt),
			StartsAt: inUTC(r.StartsAt), EndsAt: inUTC(r.EndsAt),
		},
		Jitter: postgres.Duration(r.Jitter), Overlap: job.Overlap(r.Overlap), CatchUp: job.CatchUp(r.CatchUp),
		CatchUpWindow: postgres.Duration(r.CatchUpWindow), Job: r.Job,
		NextAt: inUTC(r.NextAt), LastTick: inUTC(r.LastTick), LastJob: r.LastJob,
		LastError: r.LastError.String, LastErrorAt: inUTC(r.LastErrorAt),
		Counts:     job.ScheduleCounts{Fired: r.Fired, Skipped: r.Skipped, Missed: r.Missed, Failed: r.Failed},
		Configured: r.Configured, CreatedAt: r.CreatedAt.UTC(), UpdatedBy: r.UpdatedBy, UpdatedAt: r.UpdatedAt.UTC(),
	}
	if r.PausedAt.Valid {
		found.Pause = &job.SchedulePause{Since: r.PausedAt.Time.UTC(), By: r.PausedBy, Reason: r.PauseReason}
	}
	return found
}

// inUTC is the zero time for null.
func inUTC(t pgtype.Timestamptz) time.Time {
	if !t.Valid {
		return time.Time{}
	}
	return t.Time.UTC()
}

// Now is the time of the database.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	now, err := postgres.Read(ctx, s.db.Worker, "clock", pgx.RowTo[time.Time])
	if err != nil || len(now) == 0 {
		return time.Time{}, cmp.Or(err, postgres.Translate("clock", pgx.ErrNoRows))
	}
	return now[0].UTC(), nil
}

// Schedules returns a page of schedules.
func (s *Store) Schedules(ctx context.Context, filter job.ScheduleFilter) ([]job.Schedule, error) {
	return s.schedules(ctx, s.db.StaleLists, filter)
}

func (s *Store) schedules(ctx context.Context, from postgres.Reader, filter job.ScheduleFilter) ([]job.Schedule, error) {
	rows, err := postgres.Read(ctx, from, "schedules", pgx.RowToStructByName[shownRow],
		postgres.Text(filter.Tenant), postgres.Text(filter.Name), filter.AfterTenant, filter.AfterName, filter.Limit)
	found := make([]job.Schedule, len(rows))
	for i, row := range rows {
		found[i] = row.schedule()
	}
	return found, err
}

// Schedule returns a schedule, or job.ErrNoSchedule.
func (s *Store) Schedule(ctx context.Context, tenant, name string) (job.Schedule, error) {
	found, err := s.schedules(ctx, s.db.Lists, job.ScheduleFilter{Tenant: tenant, Name: name, Limit: 1})
	if err != nil || len(found) == 0 {
		return job.Schedule{}, cmp.Or(err, fmt.Errorf("schedule: %w", job.ErrNoSchedule))
	}
	return found[0], nil
}

// SetSchedule sets a schedule. Its NextAt counts if the timing is not what it was. If the
// configuration has set the schedule, the error is job.ErrScheduleConfigured.
func (s *Store) SetSchedule(ctx context.Context, set job.Schedule) error {
	changed, err := postgres.Confirm(ctx, s.db.Submissions, "set_schedule", pgx.RowTo[time.Time],
		set.Tenant, set.Name, postgres.Text(set.Timing.Cron), set.Timing.Zone, every(set), postgres.Instant(set.Timing.Anchor),
		postgres.Instant(set.Timing.At), postgres.Instant(set.Timing.StartsAt), postgres.Instant(set.Timing.EndsAt),
		postgres.Interval(set.Jitter), string(set.Overlap), string(set.CatchUp), postgres.Interval(set.CatchUpWindow),
		postgres.Document(set.Job), postgres.Instant(set.NextAt), set.UpdatedBy)
	if err == nil && len(changed) == 0 {
		return fmt.Errorf("set schedule: %w", job.ErrScheduleConfigured)
	}
	return err
}

// SyncSchedules makes these schedules the ones that the configuration sets: it writes them,
// and deletes those that a configuration has set before and that are not among them. Those
// that somebody else has set stay as they are. It returns what has changed, and what stays
// although it is among them.
func (s *Store) SyncSchedules(ctx context.Context, all []job.Schedule) ([]job.ScheduleChange, error) {
	all = slices.SortedFunc(slices.Values(all), func(a, b job.Schedule) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Name, b.Name))
	})
	instant := func(at func(job.Schedule) time.Time) pgtype.ArrayGetter {
		return postgres.Column(all, func(s job.Schedule) pgtype.Timestamptz { return postgres.Instant(at(s)) })
	}
	return postgres.Change(ctx, s.db.Worker, "sync_schedules", pgx.RowToStructByName[job.ScheduleChange],
		postgres.Column(all, func(s job.Schedule) string { return s.Tenant }),
		postgres.Column(all, func(s job.Schedule) string { return s.Name }),
		postgres.Column(all, func(s job.Schedule) pgtype.Text { return postgres.Text(s.Timing.Cron) }),
		postgres.Column(all, func(s job.Schedule) string { return s.Timing.Zone }),
		postgres.Column(all, every),
		instant(func(s job.Schedule) time.Time { return s.Timing.Anchor }), instant(func(s job.Schedule) time.Time { return s.Timing.At }),
		instant(func(s job.Schedule) time.Time { return s.Timing.StartsAt }), instant(func(s job.Schedule) time.Time { return s.Timing.EndsAt }),
		postgres.Column(all, func(s job.Schedule) pgtype.Interval { return postgres.Interval(s.Jitter) }),
		postgres.Column(all, func(s job.Schedule) string { return string(s.Overlap) }),
		postgres.Column(all, func(s job.Schedule) string { return string(s.CatchUp) }),
		postgres.Column(all, func(s job.Schedule) pgtype.Interval { return postgres.Interval(s.CatchUpWindow) }),
		postgres.Column(all, func(s job.Schedule) string { return string(s.Job) }),
		instant(func(s job.Schedule) time.Time { return s.NextAt }))
}

func every(s job.Schedule) pgtype.Interval {
	return pgtype.Interval{Microseconds: s.Timing.Every.Microseconds(), Valid: s.Timing.Every != 0}
}

// DeleteSchedule deletes a schedule. Its jobs stay. Errors: job.ErrNoSchedule, or
// job.ErrScheduleConfigured if the configuration has set it.
func (s *Store) DeleteSchedule(ctx context.Context, tenant, name string) error {
	deleted, err := postgres.Confirm(ctx, s.db.Submissions, "delete_schedule", pgx.RowTo[bool], tenant, name)
	switch {
	case err != nil:
		return err
	case len(deleted) == 0:
		return fmt.Errorf("delete schedule: %w", job.ErrNoSchedule)
	case !deleted[0]:
		return fmt.Errorf("delete schedule: %w", job.ErrScheduleConfigured)
	}
	return nil
}

// PauseSchedule pauses a schedule, or returns job.ErrNoSchedule. One that is paused keeps
// the beginning of its pause.
func (s *Store) PauseSchedule(ctx context.Context, tenant, name, reason, by string) error {
	paused, err := postgres.Confirm(ctx, s.db.Submissions, "pause_schedule", pgx.RowTo[time.Time], tenant, name, reason, by)
	if err == nil && len(paused) == 0 {
		return fmt.Errorf("pause schedule: %w", job.ErrNoSchedule)
	}
	return err
}

// ResumeSchedule ends the pause of a schedule as it was read: its next tick is the one
// given. ended is false if it is not paused, or if somebody has changed it meanwhile.
func (s *Store) ResumeSchedule(ctx context.Context, read job.Schedule, next time.Time) (ended bool, err error) {
	resumed, err := postgres.Confirm(ctx, s.db.Submissions, "unpause_schedule", pgx.RowTo[string],
		read.Tenant, read.Name, postgres.Instant(next), read.UpdatedAt)
	return len(resumed) > 0, err
}

package v1

import (
	"encoding/json"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// ScheduleTiming says when a schedule has ticks. Durations are texts, as in all requests.
type ScheduleTiming struct {
	Cron     string     `json:"cron,omitempty" maxLength:"200" example:"30 6 * * 1-5" doc:"Five fields: minute, hour, day of the month, month, day of the week; six begin with the second. Names, such as MON or JAN, and @hourly, @daily, @weekly, @monthly, @yearly. Exactly one of cron, every and at is needed."`
	Zone     string     `json:"zone,omitempty" example:"Europe/Berlin" doc:"The time zone of cron, by its IANA name. The default is UTC."`
	Every    string     `json:"every,omitempty" example:"15m" doc:"The time from one tick to the next: a Go duration of whole seconds, from 1s to 8784h."`
	Anchor   *time.Time `json:"anchor,omitempty" doc:"One of the ticks of every, from which the others are counted. The default is 1970-01-01T00:00:00Z."`
	At       *time.Time `json:"at,omitempty" doc:"The only tick."`
	StartsAt *time.Time `json:"startsAt,omitempty" doc:"No tick is before this time."`
	EndsAt   *time.Time `json:"endsAt,omitempty" doc:"No tick is after this time."`
}

// TimingOf is a timing as somebody would send it.
func TimingOf(t job.Timing) ScheduleTiming {
	return ScheduleTiming{
		Cron: t.Cron, Zone: t.Zone, Every: textOf(t.Every), Anchor: unlessZero(t.Anchor), At: unlessZero(t.At),
		StartsAt: unlessZero(t.StartsAt), EndsAt: unlessZero(t.EndsAt),
	}
}

func textOf(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

func unlessZero(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// ScheduleSpec is what somebody sets of a schedule.
type ScheduleSpec struct {
	ScheduleTiming
	Jitter        string          `json:"jitter,omitempty" example:"30s" doc:"Delay each job by its own part of this time, always the same for a tick: a Go duration up to 24h. The default is 0s."`
	Overlap       job.Overlap     `json:"overlap,omitempty" enum:"allow,skip,queue,cancel_previous" doc:"What a tick does while the job of an earlier one has not ended: it makes its job all the same; it makes none; its job waits, if none waits yet; it cancels the earlier one. The default is allow."`
	CatchUp       job.CatchUp     `json:"catchUp,omitempty" enum:"none,last,all" doc:"Which ticks make jobs for which no orchestrator was there in time, which is a minute: none, the last of them, or all within catchUpWindow. The default is last."`
	CatchUpWindow string          `json:"catchUpWindow,omitempty" example:"24h0m0s" doc:"How far back catchUp all goes: a Go duration from 1m to 8784h. The default is 24h."`
	Job           json.RawMessage `json:"job,omitempty" payloads:"withhold" doc:"The submission that each tick makes, as for POST /jobs, without idempotencyKey, runAt, delay, hold, expiresAt and tenant. If its payload is an object that has no member scheduledTime, and the job type allows one, each job gets its tick there. In an answer, absent unless you have the scopes observe and payloads."`
}

// Schedule is a schedule as it is.
type Schedule struct {
	Name    string       `json:"name"`
	Tenant  string       `json:"tenant"`
	State   string       `json:"state" enum:"active,paused,finished" doc:"Finished schedules have no ticks any more."`
	JobType string       `json:"jobType" doc:"Of the jobs that it makes."`
	Spec    ScheduleSpec `json:"spec" doc:"As it was set, with the defaults filled in."`

	NextAt      *time.Time     `json:"nextAt,omitempty" doc:"The next tick. Absent unless active."`
	LastTick    *time.Time     `json:"lastTick,omitempty" doc:"The latest tick that has its job."`
	LastJobID   *job.ID        `json:"lastJobId,omitempty" format:"uuid" doc:"The latest job that a tick has made. Runs by hand do not count."`
	LastStatus  job.Status     `json:"lastStatus,omitempty" enum:"PENDING,RUNNING,COMPLETED,FAILED,CANCELED" doc:"Of that job."`
	LastError   string         `json:"lastError,omitempty" doc:"Why the latest tick that should have made a job made none. Absent once a later one has made one."`
	LastErrorAt *time.Time     `json:"lastErrorAt,omitempty"`
	Ticks       ScheduleTicks  `json:"ticks"`
	Pause       *SchedulePause `json:"pause,omitempty" doc:"Absent unless paused."`
	Configured  bool           `json:"configured" doc:"Whether a configuration sets the schedule. Then the API neither sets nor deletes it."`
	CreatedAt   time.Time      `json:"createdAt"`
	UpdatedBy   string         `json:"updatedBy,omitempty" doc:"Who set the schedule: the user who logged in, or a token by its name."`
	UpdatedAt   time.Time      `json:"updatedAt"`
}

// ScheduleTicks says what became of the ticks.
type ScheduleTicks struct {
	Fired   int64 `json:"fired" doc:"Made a job, or found it made."`
	Skipped int64 `json:"skipped" doc:"Made none because of an earlier job."`
	Missed  int64 `json:"missed" doc:"Made none because no orchestrator was there in time. At most 10,000 are counted at once."`
	Failed  int64 `json:"failed" doc:"Could make none."`
}

// SchedulePause says who has paused a schedule.
type SchedulePause struct {
	Since    time.Time `json:"since"`
	PausedBy string    `json:"pausedBy,omitempty" doc:"Who: the user who logged in, or a token by its name."`
	Reason   string    `json:"reason,omitempty" doc:"Why, for people."`
}

// SchedulePauseSpec pauses a schedule.
type SchedulePauseSpec struct {
	Reason string `json:"reason,omitempty" maxLength:"500" doc:"Why, for people."`
}

// ScheduleList is a page of schedules.
type ScheduleList struct {
	Schedules  []Schedule `json:"schedules" nullable:"false" doc:"By tenant and name, without their jobs."`
	NextCursor string     `json:"nextCursor,omitempty" doc:"Send it as cursor for the next page. Absent on the last page."`
}

// ScheduleOf is what people see of a schedule: its job only if they may.
func ScheduleOf(s job.Schedule, withJob bool) Schedule {
	shown := Schedule{
		Name: s.Name, Tenant: s.Tenant, State: s.State(), JobType: jobTypeOf(s.Job),
		Spec: ScheduleSpec{
			ScheduleTiming: TimingOf(s.Timing), Jitter: textOf(s.Jitter), Overlap: s.Overlap, CatchUp: s.CatchUp,
			CatchUpWindow: textOf(s.CatchUpWindow),
		},
		NextAt: unlessZero(s.NextAt), LastTick: unlessZero(s.LastTick), LastJobID: s.LastJob,
		LastError: s.LastError, LastErrorAt: unlessZero(s.LastErrorAt),
		Ticks:      ScheduleTicks{Fired: s.Counts.Fired, Skipped: s.Counts.Skipped, Missed: s.Counts.Missed, Failed: s.Counts.Failed},
		Configured: s.Configured, CreatedAt: s.CreatedAt, UpdatedBy: s.UpdatedBy, UpdatedAt: s.UpdatedAt,
	}
	if withJob {
		shown.Spec.Job = s.Job
	}
	if s.LastJobState != "" {
		shown.LastStatus = s.LastJobState.Status()
	}
	if s.Pause != nil {
		shown.Pause = &SchedulePause{Since: s.Pause.Since, PausedBy: s.Pause.By, Reason: s.Pause.Reason}
	}
	return shown
}

func jobTypeOf(submission json.RawMessage) string {
	var of struct {
		JobType string `json:"jobType"`
	}
	_ = json.Unmarshal(submission, &of) // it was checked when it was set
	return of.JobType
}

// PreviewSpec asks for the runs of a timing that is not stored.
type PreviewSpec struct {
	ScheduleTiming
	After *time.Time `json:"after,omitempty" doc:"Show runs after this time. The default is now."`
	Limit int        `json:"limit,omitempty" minimum:"1" maximum:"100" doc:"How many runs to show. The default is 10."`
}

// ScheduledRun is one tick that is to come.
type ScheduledRun struct {
	At    time.Time `json:"at" doc:"The tick."`
	Local time.Time `json:"local" doc:"The same in the schedule's time zone, with its offset to UTC."`
	DueAt time.Time `json:"dueAt" doc:"When its job is due: the tick and its jitter."`
}

// ScheduledRuns is the answer with the next runs.
type ScheduledRuns struct {
	Runs []ScheduledRun `json:"runs" nullable:"false" doc:"In their order. Fewer than asked for if the schedule ends."`
}

// BackfillSpec asks for the jobs of a range of ticks.
type BackfillSpec struct {
	From time.Time `json:"from" doc:"The first tick is not before this time."`
	To   time.Time `json:"to" doc:"The last tick is not after this time, which must not be in the future."`
}

// Backfilled says what became of the ticks of a backfill.
type Backfilled struct {
	Ticks   int `json:"ticks" doc:"How many the range has."`
	Made    int `json:"made" doc:"For how many a job was made."`
	Found   int `json:"found" doc:"How many had their job already."`
	Skipped int `json:"skipped" doc:"How many got none, because the job must be unique and another was there."`
}

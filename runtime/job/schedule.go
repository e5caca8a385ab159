package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"
)

// The errors about schedules.
var (
	// ErrNoSchedule says that there is no schedule of the tenant and name.
	ErrNoSchedule = errors.New("no such schedule")
	// ErrScheduleConfigured says that the configuration has set a schedule, so nothing else
	// can change what it says.
	ErrScheduleConfigured = errors.New("the schedule is set by the configuration")
	// ErrTooManyTicks says that a backfill would have more than MaxBackfill ticks. Nothing
	// was written.
	ErrTooManyTicks = errors.New("too many ticks")
)

// Bounds of schedules.
const (
	// MaxScheduleName is in bytes: the idempotency keys of the jobs contain the name.
	MaxScheduleName = 200
	// MinEvery is also the precision of every time of a schedule.
	MinEvery  = time.Second
	MaxEvery  = 366 * 24 * time.Hour
	MaxJitter = 24 * time.Hour
	// MinCatchUpWindow is how late a tick may be without being missed.
	MinCatchUpWindow     = time.Minute
	DefaultCatchUpWindow = 24 * time.Hour
	MaxCatchUpWindow     = 366 * 24 * time.Hour
	// MaxBackfill bounds the ticks of one backfill.
	MaxBackfill = 10_000
	// MaxPreview bounds the runs of one preview.
	MaxPreview = 100
)

// Schedule makes a job of a template at each of its ticks.
type Schedule struct {
	Tenant, Name string
	Timing       Timing
	// Jitter delays each job by its own part of this time.
	Jitter  time.Duration
	Overlap Overlap
	CatchUp CatchUp
	// CatchUpWindow is how far back CatchUpAll goes.
	CatchUpWindow time.Duration
	// Job is a submission as JSON, without what the schedule itself decides.
	Job json.RawMessage

	// NextAt is the next tick that has not been fired; the zero time if none follows, or
	// while it is paused.
	NextAt time.Time
	// Pause is nil unless the schedule is paused.
	Pause *SchedulePause
	// LastTick is the latest tick that made a job; the zero time for none yet.
	LastTick time.Time
	// LastJob is the latest job that a tick has made, which the next tick may overlap with;
	// nil for none yet. Its state is empty if it is not known.
	LastJob      *ID
	LastJobState State
	// LastError says why the latest tick that should have made a job made none; empty if
	// a later one made one.
	LastError   string
	LastErrorAt time.Time
	Counts      ScheduleCounts
	Configured  bool
	CreatedAt   time.Time
	UpdatedBy   string
	UpdatedAt   time.Time
}

// ScheduleCounts says what became of the ticks so far.
type ScheduleCounts struct {
	// Fired made a job, or found it made. Skipped made none because of an earlier job,
	// Missed because nobody was there in time, Failed because none could be made.
	Fired, Skipped, Missed, Failed int64
}

// SchedulePause says who paused a schedule.
type SchedulePause struct {
	Since      time.Time
	By, Reason string
}

// State is active, paused or finished.
func (s *Schedule) State() string {
	switch {
	case s.Pause != nil:
		return "paused"
	case s.NextAt.IsZero():
		return "finished"
	}
	return "active"
}

// Timing says when a schedule has ticks: exactly one of Cron, Every and At is set. Times
// are whole seconds.
type Timing struct {
	Cron string
	// Zone is the name of the zone that Cron is in; empty for UTC.
	Zone  string
	Every time.Duration
	// Anchor is one of the ticks of Every, not necessarily the first; the zero time for
	// the beginning of 1970, in UTC.
	Anchor time.Time
	At     time.Time
	// StartsAt and EndsAt bound the ticks, and are among them; the zero time for no bound.
	StartsAt, EndsAt time.Time
}

// Overlap says what a tick does while the job of an earlier one has not ended.
type Overlap string

// The overlaps.
const (
	// OverlapAllow makes the job all the same.
	OverlapAllow Overlap = "allow"
	// OverlapSkip makes no job.
	OverlapSkip Overlap = "skip"
	// OverlapQueue makes a job that waits for the one that runs, unless one waits already.
	OverlapQueue Overlap = "queue"
	// OverlapCancelPrevious cancels the earlier job.
	OverlapCancelPrevious Overlap = "cancel_previous"
)

// Overlaps lists all of them.
func Overlaps() []Overlap {
	return []Overlap{OverlapAllow, OverlapSkip, OverlapQueue, OverlapCancelPrevious}
}

// CatchUp says which missed ticks make jobs: those for which nobody was there in time.
type CatchUp string

// The ways to catch up.
const (
	CatchUpNone CatchUp = "none"
	// CatchUpLast makes a job for the latest of them.
	CatchUpLast CatchUp = "last"
	// CatchUpAll makes one for each within the window.
	CatchUpAll CatchUp = "all"
)

// CatchUps lists all of them.
func CatchUps() []CatchUp { return []CatchUp{CatchUpNone, CatchUpLast, CatchUpAll} }

// TickKey is the idempotency key of the job of a tick, in the schedule's tenant: so one tick
// makes one job, whoever fires it.
func TickKey(schedule string, tick time.Time) string {
	return "schedule/" + schedule + "/" + tick.UTC().Format(time.RFC3339)
}

// ScheduleKey is the concurrency key of the jobs of a schedule whose overlap needs one.
func ScheduleKey(schedule string) string { return "schedule:" + schedule }

// CheckScheduleName returns why no schedule can have the name; empty if one can.
func CheckScheduleName(name string) string {
	switch {
	case len(name) > MaxScheduleName:
		return fmt.Sprintf("must not be longer than %d bytes", MaxScheduleName)
	case !utf8.ValidString(name):
		return "must be UTF-8"
	}
	return wrongName(name)
}

// DueSchedule is a schedule of which at least one tick is due.
type DueSchedule struct {
	Schedule
	// LastJobOpen and LastJobRunning say how the last job is now.
	LastJobOpen, LastJobRunning bool
}

// Firing says what to do with the due ticks of a schedule.
type Firing struct {
	// Jobs are made in this order. Each has the key of its tick.
	Jobs []TickJob
	// Next is the next tick; the zero time for none.
	Next time.Time
	// RetryAt is when to look at the schedule again if Next is due; the zero time for at once,
	// before other schedules.
	RetryAt time.Time
	// Skipped, Missed and Failed count ticks that make no job; Error says why of the last
	// that failed.
	Skipped, Missed, Failed int64
	Error                   string
	// CancelLast cancels the last job, if a new one takes its place.
	CancelLast bool
}

// TickJob is the job of a tick.
type TickJob struct {
	Tick       time.Time
	Submission Submission
	// Done is called with what became of the job once that is committed; nil for nobody.
	Done func(Submitted)
}

// Fired is what became of one schedule in a round.
type Fired struct {
	Tenant, Name string
	// LastTick is that of the schedule before the round.
	LastTick time.Time
	Firing   Firing
	// Results has one for each of the jobs.
	Results []Submitted
	// Canceled is the last job, if this round has canceled it or asked its worker to.
	Canceled *Cancellation
}

// ScheduleChange is a schedule that the configuration has set, changed or deleted, or that it
// names but leaves as it is, because somebody else has set it.
type ScheduleChange struct {
	Tenant, Name string
	Done         ScheduleDeed
}

// ScheduleDeed is what the configuration has done about a schedule.
type ScheduleDeed string

const (
	ScheduleSet     ScheduleDeed = "set" // also: changed
	ScheduleDeleted ScheduleDeed = "deleted"
	ScheduleKept    ScheduleDeed = "kept"
)

// ScheduleFilter chooses a page of schedules, by tenant and name. Empty texts are no
// restriction.
type ScheduleFilter struct {
	Tenant, Name string
	// AfterTenant and AfterName are the last position of the previous page.
	AfterTenant, AfterName string
	// Limit bounds how many are returned; at least 1.
	Limit int
}

// Backfilled counts the ticks of a backfill: for how many it made a job, found the job made
// before, or made none because another job must be the only one of its kind.
type Backfilled struct{ Ticks, Made, Found, Skipped int }

// Counts says what became of the ticks, and why of the last that could make no job; empty
// if all could. A key that another job has counts as fired: the tick has its job; but a tick
// that comes again, because the clock was set back, does not count again. A job that another
// keeps out, because both must be unique, counts as skipped.
func (f *Fired) Counts() (counts ScheduleCounts, failure string) {
	counts = ScheduleCounts{Skipped: f.Firing.Skipped, Missed: f.Firing.Missed, Failed: f.Firing.Failed}
	failure = f.Firing.Error
	for i, result := range f.Results {
		switch {
		case f.again(i):
		case f.fired(i):
			counts.Fired++
		case result.Err == nil:
			counts.Skipped++
		default:
			counts.Failed++
			failure = fmt.Sprintf("%s: %v", f.Firing.Jobs[i].Tick.Format(time.RFC3339), result.Err)
		}
	}
	return counts, failure
}

// Fresh reports whether a job was made, and not only found.
func (f *Fired) Fresh() bool {
	return slices.ContainsFunc(f.Results, func(r Submitted) bool { return r.Err == nil && !r.Receipt.Duplicate && !r.Receipt.Replayed })
}

// Latest is the latest tick that has got its job, and that job; zero for none.
func (f *Fired) Latest() (tick time.Time, id ID) {
	for i, result := range f.Results {
		if f.fired(i) && !f.again(i) {
			tick, id = f.Firing.Jobs[i].Tick, result.Receipt.ID
		}
	}
	return tick, id
}

func (f *Fired) fired(i int) bool {
	result := f.Results[i]
	return errors.Is(result.Err, ErrKeyReused) || result.Err == nil && !result.Receipt.Duplicate
}

// again reports whether the job was made when the same tick was fired before.
func (f *Fired) again(i int) bool {
	result := f.Results[i]
	found := errors.Is(result.Err, ErrKeyReused) || result.Err == nil && result.Receipt.Replayed
	return found && !f.Firing.Jobs[i].Tick.After(f.LastTick)
}

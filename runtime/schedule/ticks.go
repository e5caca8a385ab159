package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // for systems without time zones

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Ticks are the ticks of a timing.
type Ticks struct {
	// next returns the first tick after an instant, without bounds; the zero time for none.
	next         func(time.Time) time.Time
	starts, ends time.Time
}

// anyTime is where the search for a schedule's first tick begins that may have none.
var anyTime = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)

// New returns the ticks of a timing, or what is wrong with it.
func New(timing job.Timing) (*Ticks, []job.Fault) {
	var faults []job.Fault
	wrong := func(member, format string, args ...any) {
		faults = append(faults, job.Fault{Member: member, Reason: fmt.Sprintf(format, args...)})
	}
	ticks := &Ticks{starts: timing.StartsAt, ends: timing.EndsAt}
	given := 0
	for _, set := range []bool{timing.Cron != "", timing.Every != 0, !timing.At.IsZero()} {
		if set {
			given++
		}
	}
	if given != 1 {
		wrong("", "must have exactly one of cron, every and at")
	}
	for _, bound := range []struct {
		member string
		at     time.Time
	}{{"at", timing.At}, {"anchor", timing.Anchor}, {"startsAt", timing.StartsAt}, {"endsAt", timing.EndsAt}} {
		if bound.at.Nanosecond() != 0 {
			wrong(bound.member, "must be a whole second, such as %s", bound.at.UTC().Truncate(time.Second).Format(time.RFC3339))
		}
	}
	if !timing.EndsAt.IsZero() && timing.EndsAt.Before(timing.StartsAt) {
		wrong("endsAt", "is before startsAt")
	}
	zone, err := zoneOf(timing.Zone)
	switch {
	case err != nil:
		wrong("zone", "%v", err)
	case timing.Zone != "" && timing.Cron == "":
		wrong("zone", "needs cron: every and at are instants, whose zone does not matter")
	}
	if !timing.Anchor.IsZero() && timing.Every == 0 {
		wrong("anchor", "needs every")
	}
	switch {
	case timing.Cron != "":
		parsed, err := parseCron(timing.Cron, zone)
		switch {
		case err != nil:
			wrong("cron", "%v", err)
		case parsed.after(anyTime).IsZero():
			wrong("cron", "has no tick, ever: no such day exists")
		}
		ticks.next = parsed.after
	case timing.Every != 0:
		if timing.Every < job.MinEvery || timing.Every > job.MaxEvery || timing.Every%time.Second != 0 {
			wrong("every", "must be a duration of whole seconds from 1s to %s, such as 5m", job.MaxEvery)
		}
		ticks.next = func(t time.Time) time.Time { return nextOf(timing, t) }
	default:
		ticks.next = func(t time.Time) time.Time {
			if t.Before(timing.At) {
				return timing.At.UTC()
			}
			return time.Time{}
		}
	}
	if len(faults) > 0 {
		return nil, faults
	}
	return ticks, nil
}

// zoneOf is the zone of that name; UTC for an empty one.
func zoneOf(name string) (*time.Location, error) {
	if name == "" {
		return time.UTC, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || strings.EqualFold(name, "local") {
		return time.UTC, errors.New("is not a time zone; write a name of the IANA database, such as Europe/Berlin or UTC")
	}
	return zone, nil
}

// Local is the instant in the zone of the timing, for people.
func Local(timing job.Timing, t time.Time) time.Time {
	zone, _ := zoneOf(timing.Zone) // UTC for one that is wrong
	return t.In(zone)
}

// nextOf counts in seconds: a duration ends after 292 years.
func nextOf(timing job.Timing, t time.Time) time.Time {
	anchor, step := int64(0), int64(timing.Every/time.Second)
	if !timing.Anchor.IsZero() {
		anchor = timing.Anchor.Unix()
	}
	passed := (t.Unix() - anchor) / step
	if (t.Unix()-anchor)%step < 0 {
		passed--
	}
	return time.Unix(anchor+(passed+1)*step, 0).UTC()
}

// After returns the first tick after t; the zero time for none.
func (k *Ticks) After(t time.Time) time.Time {
	if before := k.starts.Add(-1); !k.starts.IsZero() && before.After(t) {
		t = before
	}
	next := k.next(t)
	if !k.ends.IsZero() && next.After(k.ends) || next.Year() > 9999 {
		return time.Time{}
	}
	return next
}

// Between returns the ticks from one instant to another, both included, but no more than
// most of them.
func (k *Ticks) Between(from, to time.Time, most int) []time.Time {
	var found []time.Time
	for t := k.After(from.Add(-1)); !t.IsZero() && !t.After(to) && len(found) < most; t = k.After(t) {
		found = append(found, t)
	}
	return found
}

// Following returns the first n ticks after t.
func (k *Ticks) Following(t time.Time, n int) []time.Time {
	var found []time.Time
	for t = k.After(t); !t.IsZero() && len(found) < n; t = k.After(t) {
		found = append(found, t)
	}
	return found
}

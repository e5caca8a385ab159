package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"

	cron "github.com/netresearch/go-cron"
)

const (
	maxCronChars = 200
	// searchYears is how far ahead a tick is looked for. February 29 falls on a given day of
	// the week at most 40 years after the last time.
	searchYears = 45
	// wildcard marks a field of the parser's schedule that begins with *.
	wildcard = 1 << 63
)

// parser reads texts of five fields, or of six that begin with seconds.
var parser = cron.MustNewParser(
	cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor |
		cron.Extended | cron.DowOrDom,
).WithMaxSearchYears(searchYears)

// cronTicks are the ticks of a cron text in a zone.
type cronTicks struct {
	// wall has the times of day, as if they were in UTC, where each exists once.
	wall *cron.SpecSchedule
	zone *time.Location
	// elapses says that the hour is a wildcard.
	elapses bool
}

// parseCron reads a text. Its errors say what would be right.
func parseCron(text string, zone *time.Location) (cronTicks, error) {
	fields := strings.Fields(text)
	switch {
	case len(text) > maxCronChars:
		return cronTicks{}, fmt.Errorf("is longer than %d characters", maxCronChars)
	case len(fields) == 0:
		return cronTicks{}, errors.New("must not be empty; write five fields, such as 30 6 * * 1-5, or six that begin with seconds")
	case strings.Contains(text, "="):
		return cronTicks{}, errors.New("must not name a time zone; set the member zone, such as Europe/Berlin")
	case strings.HasPrefix(fields[0], "@every"):
		return cronTicks{}, errors.New("must not be @every; set the member every, such as 5m")
	case strings.HasPrefix(fields[0], "@"):
		fields[0] = strings.ToLower(fields[0])
	case len(fields) != 5 && len(fields) != 6:
		return cronTicks{}, fmt.Errorf("has %d fields; write five, such as 30 6 * * 1-5, or six that begin with seconds", len(fields))
	}
	for _, field := range fields {
		if field[0] == ',' || field[len(field)-1] == ',' || strings.Contains(field, ",,") {
			return cronTicks{}, fmt.Errorf("has an empty item in %q", field)
		}
	}
	if len(fields) > 1 {
		if err := checkRanges(fields); err != nil {
			return cronTicks{}, err
		}
	}
	parsed, err := parser.Parse(strings.Join(fields, " "))
	if err != nil {
		return cronTicks{}, fmt.Errorf("cannot be read: %w", err)
	}
	wall, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return cronTicks{}, errors.New("cannot be read")
	}
	wall.Location = time.UTC
	if len(fields) == 1 {
		return cronTicks{wall: wall, zone: zone, elapses: fields[0] == "@hourly"}, nil
	}
	hour := fields[len(fields)-4]
	// A day of the month or of the week that begins with * is no choice, even if it is */2:
	// then a day must match both.
	if startsWild(fields[len(fields)-3]) {
		wall.Dom |= wildcard
	}
	if startsWild(fields[len(fields)-1]) {
		wall.Dow |= wildcard
	}
	return cronTicks{wall: wall, zone: zone, elapses: startsWild(hour)}, nil
}

func startsWild(field string) bool { return field[0] == '*' || field[0] == '?' }

// after returns the first tick after t; the zero time for none.
//
// Between two changes of its offset to UTC, a zone's clock runs evenly. So it goes from one
// such period to the next.
func (c cronTicks) after(t time.Time) time.Time {
	begin, end := period(t, c.zone)
	offset := offsetAt(t, c.zone)
	// The clock shows wall at t. It has shown everything up to shown before.
	wall := asUTC(t, offset)
	if !c.elapses && !begin.IsZero() {
		if shown := asUTC(begin, offsetAt(begin.Add(-1), c.zone)).Add(-1); shown.After(wall) {
			wall = shown
		}
	}
	for {
		next := c.wall.Next(wall)
		if next.IsZero() {
			return time.Time{}
		}
		tick := next.Add(-offset)
		if end.IsZero() || tick.Before(end) {
			return tick.UTC()
		}
		before := asUTC(end, offset)
		offset = offsetAt(end, c.zone)
		now := asUTC(end, offset)
		wall = now.Add(-1)
		if !c.elapses {
			if next.Before(now) { // it is in the gap
				return end.UTC()
			}
			if before.After(now) { // the clock was set back
				wall = before.Add(-1)
			}
		}
		_, end = period(end, c.zone)
	}
}

// period is the time around t in which the zone's offset does not change; zero for no bound.
func period(t time.Time, zone *time.Location) (begin, end time.Time) {
	begin, end = t.In(zone).ZoneBounds()
	if begin.After(t) {
		begin = time.Time{}
	}
	if !end.IsZero() && !end.After(t) {
		// After 2037, Go gives years 365 days here: on December 31 of a leap year, the end
		// is over. No clock is changed that day.
		end = t.Add(12 * time.Hour)
	}
	return begin, end
}

// offsetAt is by how much the zone's clock is ahead of UTC.
func offsetAt(t time.Time, zone *time.Location) time.Duration {
	_, seconds := t.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}

// asUTC is what the clock shows, as if it were UTC.
func asUTC(t time.Time, offset time.Duration) time.Time { return t.UTC().Add(offset) }

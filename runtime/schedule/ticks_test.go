package schedule_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	cron "github.com/netresearch/go-cron"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/schedule"
)

func ticks(t testing.TB, timing job.Timing) *schedule.Ticks {
	t.Helper()
	ticks, faults := schedule.New(timing)
	require.Empty(t, faults)
	return ticks
}

func at(t testing.TB, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, text)
	require.NoError(t, err)
	return parsed.UTC()
}

// The local times of ticks on the days when clocks change, with their offsets.
func TestTicksOnTheDaysWhenClocksChange(t *testing.T) {
	const berlin, newYork, lordHowe = "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"
	for _, c := range []struct {
		name, zone, cron, after string
		want                    []string
	}{
		{"a fixed time in the gap comes when the gap ends", berlin, "30 2 * * *", "2026-03-28T00:00:00+01:00", []string{
			"2026-03-28T02:30:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00",
		}},
		{"several times in the gap come once", berlin, "0,10,20 2 * * *", "2026-03-28T12:00:00+01:00", []string{
			"2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00",
		}},
		{"a time in the gap and one at its end are one", berlin, "0 2,3 * * *", "2026-03-28T12:00:00+01:00", []string{
			"2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00",
		}},
		{"a repeated fixed time comes the first time", berlin, "30 2 * * *", "2026-10-24T12:00:00+02:00", []string{
			"2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00",
		}},
		{"asked between the two, a repeated time has been", berlin, "30 2 * * *", "2026-10-25T02:10:00+01:00", []string{
			"2026-10-26T02:30:00+01:00",
		}},
		{"a range of hours is fixed", berlin, "0 1-3 * * *", "2026-10-24T12:00:00+02:00", []string{
			"2026-10-25T01:00:00+02:00", "2026-10-25T02:00:00+02:00", "2026-10-25T03:00:00+01:00",
		}},
		{"every hour skips the gap", berlin, "0 * * * *", "2026-03-29T00:30:00+01:00", []string{
			"2026-03-29T01:00:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-29T04:00:00+02:00",
		}},
		{"every hour comes in both repeated hours", berlin, "0 * * * *", "2026-10-25T01:30:00+02:00", []string{
			"2026-10-25T02:00:00+02:00", "2026-10-25T02:00:00+01:00", "2026-10-25T03:00:00+01:00",
		}},
		{"every second hour in autumn", berlin, "0 */2 * * *", "2026-10-24T23:00:00+02:00", []string{
			"2026-10-25T00:00:00+02:00", "2026-10-25T02:00:00+02:00", "2026-10-25T02:00:00+01:00", "2026-10-25T04:00:00+01:00",
		}},
		{"a quarter past midnight", berlin, "@daily", "2026-03-28T12:00:00+01:00", []string{
			"2026-03-29T00:00:00+01:00", "2026-03-30T00:00:00+02:00",
		}},
		{"weekly across a change", berlin, "0 2 * * 0", "2026-03-22T12:00:00+01:00", []string{
			"2026-03-29T03:00:00+02:00", "2026-04-05T02:00:00+02:00",
		}},

		{"spring in New York", newYork, "30 2 * * *", "2026-03-07T12:00:00-05:00", []string{
			"2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00",
		}},
		{"autumn in New York", newYork, "30 1 * * *", "2026-10-31T12:00:00-04:00", []string{
			"2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00",
		}},
		{"a wildcard hour in New York", newYork, "30 * * * *", "2026-11-01T00:40:00-04:00", []string{
			"2026-11-01T01:30:00-04:00", "2026-11-01T01:30:00-05:00", "2026-11-01T02:30:00-05:00",
		}},
		{"the end of the repeated hour", newYork, "0 1,2 * * *", "2026-10-31T12:00:00-04:00", []string{
			"2026-11-01T01:00:00-04:00", "2026-11-01T02:00:00-05:00", "2026-11-02T01:00:00-05:00",
		}},

		{"half an hour is skipped in Lord Howe", lordHowe, "15 2 * * *", "2026-10-03T12:00:00+10:30", []string{
			"2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00",
		}},
		{"a time after the half hour", lordHowe, "45 2 * * *", "2026-10-03T12:00:00+10:30", []string{
			"2026-10-04T02:45:00+11:00",
		}},
		{"half an hour is repeated in Lord Howe", lordHowe, "45 1 * * *", "2026-04-04T12:00:00+11:00", []string{
			"2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30",
		}},
		{"a wildcard hour in Lord Howe", lordHowe, "*/15 * * * *", "2026-04-05T01:20:00+11:00", []string{
			"2026-04-05T01:30:00+11:00", "2026-04-05T01:45:00+11:00", "2026-04-05T01:30:00+10:30", "2026-04-05T01:45:00+10:30",
			"2026-04-05T02:00:00+10:30",
		}},
		{"a wildcard hour skips half an hour", lordHowe, "*/15 * * * *", "2026-10-04T01:40:00+10:30", []string{
			"2026-10-04T01:45:00+10:30", "2026-10-04T02:30:00+11:00",
		}},

		{"the last day of a leap year far ahead", berlin, "0 12 * * *", "2040-12-30T13:00:00+01:00", []string{
			"2040-12-31T12:00:00+01:00", "2041-01-01T12:00:00+01:00",
		}},
		{"a midnight that does not exist", "America/Santiago", "0 0 * * *", "2026-09-05T12:00:00-04:00", []string{
			"2026-09-06T01:00:00-03:00", "2026-09-07T00:00:00-03:00",
		}},
		{"a day that does not exist", "Pacific/Apia", "0 12 30 12 *", "2011-12-29T20:00:00-10:00", []string{
			"2011-12-31T00:00:00+14:00", "2012-12-30T12:00:00+14:00",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			timing := job.Timing{Cron: c.cron, Zone: c.zone}
			var got []string
			for _, tick := range ticks(t, timing).Following(at(t, c.after), len(c.want)) {
				got = append(got, schedule.Local(timing, tick).Format(time.RFC3339))
			}
			require.Equal(t, c.want, got)
		})
	}
}

// Each is decided by looking at every minute of the days around a change.
func TestTicksAreThoseOfAClockThatIsLookedAtEachMinute(t *testing.T) {
	random := rand.New(rand.NewPCG(17, 1)) //nolint:gosec // repeatable
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	for range 200 {
		changes := [][2]string{
			{"Europe/Berlin", "2026-03-28T20:00:00Z"},
			{"Europe/Berlin", "2026-10-24T20:00:00Z"},
			{"America/New_York", "2026-03-08T01:00:00Z"},
			{"America/New_York", "2026-11-01T01:00:00Z"},
			{"Australia/Lord_Howe", "2026-04-04T10:00:00Z"},
			{"Australia/Lord_Howe", "2026-10-03T10:00:00Z"},
			{"UTC", "2026-02-28T20:00:00Z"},
		}
		change := changes[random.IntN(len(changes))]
		minute := pick("0", "30", "15,45", "*/7", "59", "*", "5-10")
		hour := pick("*", "*/2", "1", "2", "3", "0-4", "1,2", "2,3", "0", "23")
		timing := job.Timing{Cron: minute + " " + hour + " * * " + pick("*", "*", "0-6", "SUN", "sat,sun"), Zone: change[0]}
		zone, err := time.LoadLocation(change[0])
		require.NoError(t, err)
		begin := at(t, change[1]).Add(time.Duration(random.IntN(600)) * time.Minute)
		end := begin.Add(24 * time.Hour)

		wall, err := cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse(timing.Cron)
		require.NoError(t, err)
		matches := func(year int, month time.Month, day, hour, minute int) bool {
			return cron.Matches(wall, time.Date(year, month, day, hour, minute, 0, 0, time.UTC))
		}
		var want []time.Time
		shown := make(map[string]bool) // the minutes that the clock has shown
		elapses := hour == "*" || hour == "*/2"
		last := ""
		for now := begin.Add(-24 * time.Hour); !now.After(end); now = now.Add(time.Minute) {
			local := now.In(zone)
			fires := matches(local.Year(), local.Month(), local.Day(), local.Hour(), local.Minute())
			if !elapses {
				fires = fires && !shown[local.Format("0102 1504")]
				// Every minute between the last one shown and this one was skipped.
				if from, err := time.Parse("2006-01-02 15:04", last); err == nil {
					for skipped := from.Add(time.Minute); skipped.Format("2006-01-02 15:04") < local.Format("2006-01-02 15:04"); skipped = skipped.Add(time.Minute) {
						fires = fires || cron.Matches(wall, skipped)
					}
				}
				shown[local.Format("0102 1504")] = true
				last = local.Format("2006-01-02 15:04")
			}
			if fires && now.After(begin) {
				want = append(want, now)
			}
		}
		got := ticks(t, timing).Between(begin.Add(time.Second), end, 10_000)
		require.Equal(t, want, got, "%+v after %s", timing, begin)
	}
}

func TestTicksAreThoseThatTheTextMeans(t *testing.T) {
	for _, c := range []struct {
		cron, after string
		want        []string
	}{
		{"* * * * *", "2026-01-01T00:00:30Z", []string{"2026-01-01T00:01:00Z", "2026-01-01T00:02:00Z"}},
		{"*/20 * * * * *", "2026-01-01T00:00:00Z", []string{"2026-01-01T00:00:20Z", "2026-01-01T00:00:40Z", "2026-01-01T00:01:00Z"}},
		{"59 59 23 31 12 *", "2026-01-01T00:00:00Z", []string{"2026-12-31T23:59:59Z", "2027-12-31T23:59:59Z"}},
		{"0 9 * * mon-FRI", "2026-01-02T10:00:00Z", []string{"2026-01-05T09:00:00Z", "2026-01-06T09:00:00Z"}},
		{"0 0 1 jan,JUL *", "2026-01-02T00:00:00Z", []string{"2026-07-01T00:00:00Z", "2027-01-01T00:00:00Z"}},
		{"0 0 * * 7", "2026-01-01T00:00:00Z", []string{"2026-01-04T00:00:00Z"}},
		{"0 22-23,0-2 * * *", "2026-01-01T21:00:00Z", []string{"2026-01-01T22:00:00Z", "2026-01-01T23:00:00Z", "2026-01-02T00:00:00Z", "2026-01-02T01:00:00Z", "2026-01-02T02:00:00Z", "2026-01-02T22:00:00Z"}},
		{"5/20 0 * * *", "2026-01-01T00:00:00Z", []string{"2026-01-01T00:05:00Z", "2026-01-01T00:25:00Z", "2026-01-01T00:45:00Z", "2026-01-02T00:05:00Z"}},
		// A day of the month or of the week, if both are chosen; both, if one begins with *.
		{"0 0 13 * FRI", "2026-01-01T00:00:00Z", []string{"2026-01-02T00:00:00Z", "2026-01-09T00:00:00Z", "2026-01-13T00:00:00Z", "2026-01-16T00:00:00Z"}},
		{"0 0 */2 * MON", "2026-01-01T00:00:00Z", []string{"2026-01-05T00:00:00Z", "2026-01-19T00:00:00Z"}},
		{"0 0 29 2 *", "2026-01-01T00:00:00Z", []string{"2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"}},
		{"0 0 29 2 *", "2096-03-01T00:00:00Z", []string{"2104-02-29T00:00:00Z"}},
		{"0 0 31 * *", "2026-01-31T00:00:00Z", []string{"2026-03-31T00:00:00Z", "2026-05-31T00:00:00Z"}},
		{"0 0 L * *", "2026-01-31T00:00:00Z", []string{"2026-02-28T00:00:00Z", "2026-03-31T00:00:00Z"}},
		{"0 0 * * FRI#3", "2026-01-01T00:00:00Z", []string{"2026-01-16T00:00:00Z", "2026-02-20T00:00:00Z"}},
		{"0 0 LW * *", "2026-01-01T00:00:00Z", []string{"2026-01-30T00:00:00Z", "2026-02-27T00:00:00Z"}},
		{"0 12 31 12 *", "2040-12-30T00:00:00Z", []string{"2040-12-31T12:00:00Z", "2041-12-31T12:00:00Z"}},
		{"@hourly", "2026-01-01T00:30:00Z", []string{"2026-01-01T01:00:00Z"}},
		{"@daily", "2026-01-01T00:00:00Z", []string{"2026-01-02T00:00:00Z"}},
		{"@MIDNIGHT", "2026-01-01T00:00:00Z", []string{"2026-01-02T00:00:00Z"}},
		{"@weekly", "2026-01-01T00:00:00Z", []string{"2026-01-04T00:00:00Z"}},
		{"@monthly", "2026-01-01T00:00:00Z", []string{"2026-02-01T00:00:00Z"}},
		{"@yearly", "2026-01-01T00:00:00Z", []string{"2027-01-01T00:00:00Z"}},
		{"@annually", "2026-01-01T00:00:00Z", []string{"2027-01-01T00:00:00Z"}},
	} {
		t.Run(c.cron, func(t *testing.T) {
			var got []string
			for _, tick := range ticks(t, job.Timing{Cron: c.cron}).Following(at(t, c.after), len(c.want)) {
				got = append(got, tick.Format(time.RFC3339))
			}
			require.Equal(t, c.want, got)
		})
	}
}

func TestEveryAndAtAreInstants(t *testing.T) {
	from := at(t, "2026-01-01T00:10:00Z")
	require.Equal(t, []time.Time{at(t, "2026-01-01T01:30:00Z"), at(t, "2026-01-01T03:00:00Z")},
		ticks(t, job.Timing{Every: 90 * time.Minute}).Following(from, 2), "counted from 1970")
	require.Equal(t, []time.Time{at(t, "2026-01-01T00:20:05Z"), at(t, "2026-01-01T00:50:05Z")},
		ticks(t, job.Timing{Every: 30 * time.Minute, Anchor: at(t, "2030-01-01T00:20:05Z")}).Following(from, 2), "the anchor may be later")
	require.Equal(t, []time.Time{at(t, "2026-01-01T00:10:01Z")}, ticks(t, job.Timing{Every: time.Second}).Following(from, 1))
	require.Equal(t, []time.Time{at(t, "1960-01-01T00:00:00Z")},
		ticks(t, job.Timing{Every: 24 * time.Hour}).Following(at(t, "1959-12-31T05:00:00Z"), 1), "before 1970")

	once := ticks(t, job.Timing{At: at(t, "2026-01-01T00:10:00Z")})
	require.Empty(t, once.Following(from, 3))
	require.Equal(t, []time.Time{from}, once.Following(from.Add(-time.Second), 3))
}

func TestBoundsAreAmongTheTicks(t *testing.T) {
	k := ticks(t, job.Timing{Cron: "0 * * * *", StartsAt: at(t, "2026-01-01T05:00:00Z"), EndsAt: at(t, "2026-01-01T07:00:00Z")})
	require.Equal(t, []time.Time{at(t, "2026-01-01T05:00:00Z"), at(t, "2026-01-01T06:00:00Z"), at(t, "2026-01-01T07:00:00Z")},
		k.Following(at(t, "2025-01-01T00:00:00Z"), 10))
	require.Len(t, k.Between(at(t, "2025-01-01T00:00:00Z"), at(t, "2027-01-01T00:00:00Z"), 2), 2)
	require.Len(t, k.Between(at(t, "2026-01-01T06:00:00Z"), at(t, "2026-01-01T06:00:00Z"), 9), 1, "both ends are included")
}

func TestATimingThatCannotBeIsRefused(t *testing.T) {
	now := at(t, "2026-01-01T00:00:00Z")
	for _, c := range []struct {
		timing         job.Timing
		member, reason string
	}{
		{job.Timing{}, "", "exactly one of cron, every and at"},
		{job.Timing{Cron: "@daily", Every: time.Hour}, "", "exactly one of cron, every and at"},
		{job.Timing{Cron: "0 0 30 2 *"}, "cron", "has no tick, ever"},
		{job.Timing{Cron: "0 0 31 4,6,9,11 *"}, "cron", "has no tick, ever"},
		{job.Timing{Cron: "TZ=Europe/Berlin 0 0 * * *"}, "cron", "set the member zone"},
		{job.Timing{Cron: "TZ="}, "cron", "set the member zone"},
		{job.Timing{Cron: "CRON_TZ=UTC @daily"}, "cron", "set the member zone"},
		{job.Timing{Cron: "@every 5m"}, "cron", "set the member every"},
		{job.Timing{Cron: "@reboot"}, "cron", "cannot be read"},
		{job.Timing{Cron: "   "}, "cron", "must not be empty"},
		{job.Timing{Cron: "* * * *"}, "cron", "has 4 fields"},
		{job.Timing{Cron: "0 0 0 1 1 * 2030"}, "cron", "has 7 fields"},
		{job.Timing{Cron: "60 * * * *"}, "cron", "above maximum (59)"},
		{job.Timing{Cron: "* 24 * * *"}, "cron", "above maximum (23)"},
		{job.Timing{Cron: "* * 0 * *"}, "cron", "below minimum (1)"},
		{job.Timing{Cron: "* * * 13 *"}, "cron", "above maximum (12)"},
		{job.Timing{Cron: "* * * * 8"}, "cron", "above maximum (7)"},
		{job.Timing{Cron: "*/0 * * * *"}, "cron", "must be a positive number"},
		{job.Timing{Cron: "-1 * * * *"}, "cron", "cannot be read"},
		{job.Timing{Cron: ", * * * *"}, "cron", "has an empty item"},
		{job.Timing{Cron: "1,,2 * * * *"}, "cron", "has an empty item"},
		{job.Timing{Cron: "H * * * *"}, "cron", "cannot be read"},
		{job.Timing{Cron: "* * * * monday"}, "cron", "cannot be read"},
		{job.Timing{Cron: "@daily", Zone: "Mars/Olympus"}, "zone", "is not a time zone"},
		{job.Timing{Cron: "@daily", Zone: "Local"}, "zone", "is not a time zone"},
		{job.Timing{Cron: "@daily", Zone: "../etc/passwd"}, "zone", "is not a time zone"},
		{job.Timing{Every: time.Hour, Zone: "UTC"}, "zone", "needs cron"},
		{job.Timing{Every: 500 * time.Millisecond}, "every", "from 1s"},
		{job.Timing{Every: 1500 * time.Millisecond}, "every", "whole seconds"},
		{job.Timing{Every: -time.Hour}, "every", "from 1s"},
		{job.Timing{Every: 400 * 24 * time.Hour}, "every", "from 1s to 8784h"},
		{job.Timing{Cron: "@daily", Anchor: now}, "anchor", "needs every"},
		{job.Timing{Cron: "@daily", StartsAt: now, EndsAt: now.Add(-time.Second)}, "endsAt", "is before startsAt"},
		{job.Timing{At: now.Add(time.Millisecond)}, "at", "whole second"},
	} {
		t.Run(fmt.Sprintf("%+v", c.timing), func(t *testing.T) {
			_, faults := schedule.New(c.timing)
			require.Len(t, faults, 1)
			require.Equal(t, c.member, faults[0].Member)
			require.Contains(t, faults[0].Reason, c.reason)
		})
	}
}

func FuzzNoTextOfCronPanics(f *testing.F) {
	for _, seed := range []string{"TZ=", "CRON_TZ=", "@", "@every", "* * * * *", "0 0 30 2 *", "L W LW 1W *#2", "0-/5 * * * *", "1/1/1 * * * *", "* * ? * ?"} {
		f.Add(seed, "Europe/Berlin")
	}
	now := time.Date(2026, 3, 28, 20, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text, zone string) {
		k, faults := schedule.New(job.Timing{Cron: text, Zone: zone})
		if len(faults) > 0 {
			return
		}
		before := now
		for _, tick := range k.Following(now, 10) {
			if !tick.After(before) {
				t.Fatalf("%q: %s is not after %s", text, tick, before)
			}
			before = tick
		}
	})
}

func TestDueTicks(t *testing.T) {
	now := at(t, "2026-01-01T12:00:30Z")
	hourly := job.Timing{Cron: "0 * * * *"}
	clock := func(ticks []time.Time) (texts []string) {
		for _, tick := range ticks {
			texts = append(texts, tick.Format("15:04:05"))
		}
		return texts
	}
	for _, c := range []struct {
		name    string
		timing  job.Timing
		next    string
		catchUp job.CatchUp
		window  time.Duration
		most    int
		fire    []string
		missed  int64
		then    string
	}{
		{"one in time", hourly, "12:00:00", job.CatchUpNone, 0, 100, []string{"12:00:00"}, 0, "13:00:00"},
		{"none", hourly, "09:00:00", job.CatchUpNone, 0, 100, []string{"12:00:00"}, 3, "13:00:00"},
		{"last", hourly, "09:00:00", job.CatchUpLast, 0, 100, []string{"11:00:00", "12:00:00"}, 2, "13:00:00"},
		{"all", hourly, "09:00:00", job.CatchUpAll, 24 * time.Hour, 100, []string{"09:00:00", "10:00:00", "11:00:00", "12:00:00"}, 0, "13:00:00"},
		{"all within the window", hourly, "09:00:00", job.CatchUpAll, 2 * time.Hour, 100, []string{"11:00:00", "12:00:00"}, 2, "13:00:00"},
		{"all in portions", hourly, "09:00:00", job.CatchUpAll, 24 * time.Hour, 2, []string{"09:00:00", "10:00:00"}, 0, "11:00:00"},
		{
			"in time up to a minute",
			job.Timing{Every: 20 * time.Second},
			"11:59:00", job.CatchUpNone, 0, 100,
			[]string{"11:59:40", "12:00:00", "12:00:20"},
			2, "12:00:40",
		},
		{"the end", job.Timing{Cron: "0 * * * *", EndsAt: at(t, "2026-01-01T12:00:00Z")}, "12:00:00", job.CatchUpLast, 0, 100, []string{"12:00:00"}, 0, ""},
		{"the end long ago", job.Timing{Cron: "0 * * * *", EndsAt: at(t, "2026-01-01T10:30:00Z")}, "09:00:00", job.CatchUpLast, 0, 100, []string{"10:00:00"}, 1, ""},
		{"once, missed", job.Timing{At: at(t, "2026-01-01T09:00:00Z")}, "09:00:00", job.CatchUpNone, 0, 100, nil, 1, ""},
		{"once, caught up", job.Timing{At: at(t, "2026-01-01T09:00:00Z")}, "09:00:00", job.CatchUpLast, 0, 100, []string{"09:00:00"}, 0, ""},
		{"too many to count", job.Timing{Every: time.Second}, "01:00:00", job.CatchUpNone, 0, 3, []string{"11:59:30", "11:59:31", "11:59:32"}, 10_000, "11:59:33"},
		{"the last of too many", job.Timing{Every: 3 * time.Second}, "01:00:00", job.CatchUpLast, 0, 1, []string{"11:59:27"}, 9_999, "11:59:30"},
	} {
		t.Run(c.name, func(t *testing.T) {
			due := ticks(t, c.timing).Due(at(t, "2026-01-01T"+c.next+"Z"), now, c.catchUp, c.window, c.most)
			then := ""
			if !due.Next.IsZero() {
				then = due.Next.Format("15:04:05")
			}
			require.Equal(t, c.fire, clock(due.Fire))
			require.Equal(t, c.missed, due.Missed)
			require.Equal(t, c.then, then)
		})
	}
}

func TestJitterIsSpreadAndAlwaysTheSame(t *testing.T) {
	tick := at(t, "2026-01-01T12:00:00Z")
	var all []time.Duration
	for i := range 1000 {
		got := schedule.Jitter("default", fmt.Sprintf("s%d", i), tick, time.Minute)
		require.Equal(t, got, schedule.Jitter("default", fmt.Sprintf("s%d", i), tick, time.Minute))
		require.True(t, got >= 0 && got < time.Minute)
		all = append(all, got)
	}
	slices.Sort(all)
	require.InDelta(t, 30, all[500].Seconds(), 5, "the middle")
	require.Greater(t, len(slices.Compact(all)), 950)
	require.NotEqual(t, schedule.Jitter("a", "s", tick, time.Hour), schedule.Jitter("a", "s", tick.Add(time.Second), time.Hour))
	require.Zero(t, schedule.Jitter("a", "s", tick, 0))
}

func BenchmarkNextTick(b *testing.B) {
	k := ticks(b, job.Timing{Cron: "*/5 9-17 * * 1-5", Zone: "Europe/Berlin"})
	t := at(b, "2026-01-01T00:00:00Z")
	for b.Loop() {
		t = k.After(t)
	}
}

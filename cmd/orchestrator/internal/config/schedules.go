package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-jobs/holdfast/api/submission"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/schedule"
)

// Schedules make jobs by the clock, by name.
type Schedules map[string]ScheduleEntry

// ScheduleEntry is one of them.
type ScheduleEntry struct {
	Tenant        string         `koanf:"tenant"`
	Cron          string         `koanf:"cron"`
	Zone          string         `koanf:"zone"`
	Every         *time.Duration `koanf:"every"`
	Anchor        Instant        `koanf:"anchor"`
	At            Instant        `koanf:"at"`
	StartsAt      Instant        `koanf:"starts_at"`
	EndsAt        Instant        `koanf:"ends_at"`
	Jitter        time.Duration  `koanf:"jitter"`
	Overlap       *job.Overlap   `koanf:"overlap"`
	CatchUp       *job.CatchUp   `koanf:"catch_up"`
	CatchUpWindow *time.Duration `koanf:"catch_up_window"`
	// Job is a submission, with the members of POST /jobs.
	Job map[string]any `koanf:"job" show:"no"`
}

// Instant is an RFC 3339 time; empty for none.
type Instant string

// scheduleKeys are the keys of members whose names differ.
var scheduleKeys = strings.NewReplacer("startsAt", "starts_at", "endsAt", "ends_at", "catchUpWindow", "catch_up_window", "catchUp", "catch_up")

// List returns the schedules, or an error that names the key of one that cannot be. Whether
// its job can be submitted is not checked: its handler may not have declared its type yet.
func (all Schedules) List() ([]job.Schedule, error) {
	var list []job.Schedule
	for _, name := range slices.Sorted(maps.Keys(all)) {
		one, faults := all[name].schedule(name)
		if len(faults) > 0 {
			at := key{"schedules", name}
			switch member := faults[0].Member; member {
			case "", "name":
			default:
				for _, part := range strings.Split(scheduleKeys.Replace(member), "/") {
					at = at.below(part)
				}
			}
			return nil, fmt.Errorf("%s: %s", at, faults[0].Reason)
		}
		list = append(list, one)
	}
	return list, nil
}

func (e ScheduleEntry) schedule(name string) (job.Schedule, []job.Fault) {
	var faults []job.Fault
	instant := func(member string, text Instant) time.Time {
		if text == "" {
			return time.Time{}
		}
		parsed, err := time.Parse(time.RFC3339, string(text))
		if err != nil {
			faults = append(faults, job.Fault{Member: member, Reason: "must be an RFC 3339 time, such as 2030-01-31T12:00:00Z"})
		}
		return parsed.UTC()
	}
	one := job.Schedule{
		Tenant: e.Tenant, Name: name, Configured: true,
		Timing: job.Timing{
			Cron: e.Cron, Zone: e.Zone, Every: or(e.Every, 0), Anchor: instant("anchor", e.Anchor), At: instant("at", e.At),
			StartsAt: instant("startsAt", e.StartsAt), EndsAt: instant("endsAt", e.EndsAt),
		},
		Jitter: e.Jitter, Overlap: or(e.Overlap, job.OverlapAllow), CatchUp: or(e.CatchUp, job.CatchUpLast),
		CatchUpWindow: or(e.CatchUpWindow, job.DefaultCatchUpWindow),
	}
	if one.Tenant == "" {
		one.Tenant = job.DefaultTenant
	} else if err := submission.CheckWord(one.Tenant, maxTenantChars); err != nil {
		faults = append(faults, job.Fault{Member: "tenant", Reason: err.Error()})
	}
	if e.Every != nil && *e.Every == 0 {
		faults = append(faults, job.Fault{Member: "every", Reason: "must be at least 1s"})
	}
	if len(e.Job) == 0 {
		return one, append(faults, job.Fault{Member: "job", Reason: "is needed: a submission, such as {jobType: REPORT, payload: {}}"})
	}
	made, err := json.Marshal(e.Job)
	if err != nil {
		return one, append(faults, job.Fault{Member: "job", Reason: "cannot be written as JSON"})
	}
	one.Job = made
	_, found := schedule.Check(one)
	faults = append(faults, found...)
	for _, mistake := range submission.Parse(made, 1).Mistakes {
		faults = append(faults, job.Fault{Member: "job" + strings.TrimPrefix(mistake.Location, "#"), Reason: mistake.Message})
	}
	return one, faults
}

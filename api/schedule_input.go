package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/api/submission"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

type schedulesInput struct {
	call
	Tenant string     `query:"tenant" maxLength:"200" doc:"Only schedules of this tenant."`
	Limit  limitParam `query:"limit" doc:"How many to return at most, from 1 to 1000. A number outside this range is clamped."`
	Cursor string     `query:"cursor" doc:"The nextCursor of the previous page, which must have had the same filters."`
}

type schedulesOutput struct {
	Link string `header:"Link" doc:"The next page, as rel=\"next\". Absent on the last page."`
	Body v1.ScheduleList
}

// scheduleInput names a schedule. Its name may contain any characters.
type scheduleInput struct {
	call
	Schedule string `path:"schedule" doc:"The name of the schedule, percent-encoded."`
	Tenant   string `query:"tenant" maxLength:"200" doc:"Whose schedule it is. The default is the tenant of the credentials, or else \"default\"."`
}

type runInput struct {
	call
	Schedule string `path:"schedule" doc:"The name of the schedule, percent-encoded."`
	Tenant   string `query:"tenant" maxLength:"200" doc:"Whose schedule it is. The default is the tenant of the credentials, or else \"default\"."`
	Key      string `header:"Idempotency-Key" doc:"Names this request: sent again, it makes no second job."`
}

type nextInput struct {
	call
	Schedule string    `path:"schedule" doc:"The name of the schedule, percent-encoded."`
	Tenant   string    `query:"tenant" maxLength:"200" doc:"Whose schedule it is. The default is the tenant of the credentials, or else \"default\"."`
	After    timeParam `query:"after" doc:"Show runs after this time. The default is now."`
	Limit    runsParam `query:"limit" doc:"How many to return at most, from 1 to 100. A number outside this range is clamped."`
}

// runsParam is how many runs a client wants at most.
type runsParam struct{ limitParam }

// Schema describes the limit.
func (runsParam) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeInteger, Default: usualRuns}
}

// of is the tenant and the name.
func (in *scheduleInput) of(ctx context.Context) (tenant, name string, err error) {
	return scheduleNamed(ctx, &in.call, in.Tenant, in.Schedule)
}

func scheduleNamed(ctx context.Context, in *call, tenant, name string) (string, string, error) {
	tenant, err := tenantOf(ctx, tenant)
	if tenant == "" {
		tenant = job.DefaultTenant
	}
	return tenant, in.decoded(name), err
}

// timingMembers read a timing.
func timingMembers(t *v1.ScheduleTiming) map[string]bodyMember {
	const instant = "an RFC 3339 time, such as \"2030-01-31T12:00:00Z\""
	return map[string]bodyMember{
		"cron": {&t.Cron, "a text, such as \"30 6 * * 1-5\""}, "zone": {&t.Zone, "a text, such as \"Europe/Berlin\""},
		"every": {&t.Every, "a duration in a string, such as \"15m\""}, "anchor": {&t.Anchor, instant}, "at": {&t.At, instant},
		"startsAt": {&t.StartsAt, instant}, "endsAt": {&t.EndsAt, instant},
	}
}

// timingOf reads durations, and returns those that cannot be read.
func timingOf(sent v1.ScheduleTiming) (job.Timing, []job.Fault) {
	var faults []job.Fault
	return job.Timing{
		Cron: sent.Cron, Zone: sent.Zone, Every: durationIn(sent.Every, "every", "15m", &faults),
		Anchor: instantIn(sent.Anchor), At: instantIn(sent.At), StartsAt: instantIn(sent.StartsAt), EndsAt: instantIn(sent.EndsAt),
	}, faults
}

func instantIn(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// durationIn is zero for an empty text.
func durationIn(text, member, example string, faults *[]job.Fault) time.Duration {
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		*faults = append(*faults, job.Fault{Member: member, Reason: "must be a duration with a unit, such as " + example + ", and below 292 years"})
	case d == 0 && member == "every":
		*faults = append(*faults, job.Fault{Member: member, Reason: "must be above zero, such as " + example})
	}
	return d
}

// read reads and checks the schedule in a body.
func (p *scheduleRoutes) read(ctx context.Context, in *scheduleInput, tenant, name string) (job.Schedule, error) {
	sent := v1.ScheduleSpec{Overlap: job.OverlapAllow, CatchUp: job.CatchUpLast, CatchUpWindow: job.DefaultCatchUpWindow.String()}
	members := timingMembers(&sent.ScheduleTiming)
	members["jitter"] = bodyMember{&sent.Jitter, "a duration in a string, such as \"30s\""}
	members["overlap"] = bodyMember{&sent.Overlap, "one of allow, skip, queue, cancel_previous"}
	members["catchUp"] = bodyMember{&sent.CatchUp, "one of none, last, all"}
	members["catchUpWindow"] = bodyMember{&sent.CatchUpWindow, "a duration in a string, such as \"6h\""}
	members["job"] = bodyMember{&sent.Job, "a submission"}
	mistakes, err := readMembers(&in.call, p.memory, p.maxBytes, members)
	if err != nil {
		return job.Schedule{}, err
	}
	one := job.Schedule{Tenant: tenant, Name: name, Overlap: sent.Overlap, CatchUp: sent.CatchUp, Job: sent.Job, UpdatedBy: guard.Name(ctx)}
	var faults []job.Fault
	one.Timing, faults = timingOf(sent.ScheduleTiming)
	one.Jitter = durationIn(sent.Jitter, "jitter", "30s", &faults)
	one.CatchUpWindow = durationIn(sent.CatchUpWindow, "catchUpWindow", "6h", &faults)
	if len(sent.Job) == 0 {
		faults = append(faults, job.Fault{Member: "job", Reason: `is required: a submission, such as {"jobType": "REPORT", "payload": {}}`})
		one.Job = json.RawMessage("{}") // what else is wrong is told, too
	}
	before := len(mistakes) + len(faults)
	found, refused, err := p.schedules.CheckSchedule(ctx, one)
	if err != nil {
		return job.Schedule{}, err
	}
	for _, fault := range found {
		if !slices.ContainsFunc(faults, func(f job.Fault) bool { return f.Member == fault.Member }) {
			faults = append(faults, fault)
		}
	}
	mistakes = append(mistakes, scheduleMistakes(faults, mistakes)...)
	switch {
	case len(mistakes) > 0:
		return job.Schedule{}, invalid(mistakes[:min(len(mistakes), submission.MaxMistakes)]...)
	case refused != nil && before == 0:
		return job.Schedule{}, belowJob(refused)
	}
	return one, nil
}

// scheduleMistakes are places of the request. A member such as job/runAt is a path.
func scheduleMistakes(faults []job.Fault, before []v1.Mistake) (mistakes []v1.Mistake) {
	for _, fault := range faults {
		place := submission.Pointer(strings.Split(fault.Member, "/")...)
		switch {
		case fault.Member == "name":
			place = "path.schedule"
		case fault.Member == "" && (len(before) > 0 || len(faults) > 1):
			continue
		case fault.Member == "":
			place = "#"
		}
		if !slices.ContainsFunc(before, func(m v1.Mistake) bool { return m.Location == place }) {
			mistakes = append(mistakes, at(place, fault.Reason))
		}
	}
	return mistakes
}

// belowJob moves the places of a refused submission into the member job.
func belowJob(refused error) error {
	var answer *v1.Problem
	if !errors.As(refused, &answer) {
		return refused
	}
	moved := *answer
	moved.Errors = slices.Clone(answer.Errors)
	if len(moved.Errors) == 0 {
		moved.Errors = []v1.Mistake{at("#/job", answer.Detail)}
	}
	for i, mistake := range moved.Errors {
		if rest, inBody := strings.CutPrefix(mistake.Location, "#"); inBody && mistake.Location != "#/job" {
			moved.Errors[i].Location = "#/job" + rest
		}
	}
	moved.Status, moved.Title, moved.Detail = http.StatusUnprocessableEntity, http.StatusText(http.StatusUnprocessableEntity), "validation failed"
	return &moved
}

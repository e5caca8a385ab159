package ui

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func timingTerms() []jobTerm {
	const instant = "UTC, such as 2030-01-31T12:00:00Z."
	return []jobTerm{
		{Name: "cron", Label: "Expression", Help: "Minute, hour, day of the month, month, day of the week, such as 30 6 * * 1-5; or @daily. This, an interval or one time.", read: asText},
		{Name: "zone", Label: "Time zone of the expression", Help: "Such as Europe/Berlin. Empty for UTC.", read: asText},
		{Name: "every", Label: "Interval", Help: "Such as 15m.", read: asText},
		{Name: "anchor", Label: "Count the interval from", Help: instant, read: asText},
		{Name: "at", Label: "One time", Help: instant, read: asText},
		{Name: "startsAt", Label: "Not before", Help: instant, read: asText},
		{Name: "endsAt", Label: "Not after", Help: instant, read: asText},
	}
}

func policyTerms() []jobTerm {
	return []jobTerm{
		{Name: "jitter", Label: "Jitter", Help: "Delays each job by its own part of this time, such as 30s, so that not all start at once.", read: asText},
		{Name: "overlap", Label: "If the job of an earlier run has not ended", Options: []choice{
			{Value: string(job.OverlapAllow), Label: "Make the job all the same"},
			{Value: string(job.OverlapSkip), Label: "Make none"},
			{Value: string(job.OverlapQueue), Label: "Let the new one wait, if none waits yet"},
			{Value: string(job.OverlapCancelPrevious), Label: "Cancel the earlier one"},
		}, read: asText},
		{Name: "catchUp", Label: "Runs that were missed", Help: "Because no orchestrator was there in time.", Options: []choice{
			{Value: string(job.CatchUpLast), Label: "Make the job of the last one"},
			{Value: string(job.CatchUpNone), Label: "Make none"},
			{Value: string(job.CatchUpAll), Label: "Make all within the time below"},
		}, read: asText},
		{Name: "catchUpWindow", Label: "How far back", Help: "For all that were missed, such as 6h. Empty for 24h.", read: asText},
	}
}

// scheduledTerms are the terms of each job that have fields.
func scheduledTerms() []jobTerm {
	terms := slices.DeleteFunc(jobTerms(), func(t jobTerm) bool { return t.Name != "priority" && t.Name != "tags" })
	return append(terms,
		jobTerm{Name: "maxAttempts", Label: "Attempts", Help: "At most. Empty for those of the type.", read: numberOrText},
		jobTerm{Name: "timeout", Label: "Timeout of an attempt", Help: "Such as 90s. Empty for that of the type.", read: asText},
	)
}

func ownTerms() []jobTerm {
	return []jobTerm{{Name: "name", Label: "Name"}, {Name: "tenant", Label: "Tenant", Help: "Empty for the default."}}
}

// valuesOf are what the fields say of a schedule as it is, and the payload of its jobs.
func valuesOf(s v1.Schedule) (values map[string]string, payload json.RawMessage) {
	spec := s.Spec
	values = map[string]string{
		"jobType": s.JobType, "cron": spec.Cron, "zone": spec.Zone, "every": spec.Every, "jitter": spec.Jitter,
		"overlap": string(spec.Overlap), "catchUp": string(spec.CatchUp), "catchUpWindow": spec.CatchUpWindow,
	}
	for name, at := range map[string]*time.Time{"anchor": spec.Anchor, "at": spec.At, "startsAt": spec.StartsAt, "endsAt": spec.EndsAt} {
		if at != nil {
			values[name] = at.UTC().Format(time.RFC3339Nano)
		}
	}
	members := map[string]json.RawMessage{}
	_ = json.Unmarshal(spec.Job, &members) // The API has checked it.
	payload = members["payload"]
	delete(members, "payload")
	delete(members, "jobType")
	for _, term := range scheduledTerms() {
		value, has := members[term.Name]
		if text, fits := termText(value); has && fits {
			values[term.Name] = text
			delete(members, term.Name)
		}
	}
	if len(members) > 0 {
		text, _ := json.Marshal(members) // It was read.
		values["other"] = indented(text)
	}
	return values, payload
}

// termText is JSON as the field of a term shows it, if it can.
func termText(value json.RawMessage) (text string, fits bool) {
	var number int
	var list []string
	switch {
	case json.Unmarshal(value, &text) == nil:
		return text, text != ""
	case json.Unmarshal(value, &number) == nil:
		return strconv.Itoa(number), true
	case json.Unmarshal(value, &list) == nil:
		return strings.Join(list, ", "), len(list) > 0 && !strings.Contains(strings.Join(list, ""), ",")
	}
	return "", false
}

package schedule

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// decided are the members of a submission that a schedule decides itself.
var decided = map[string]string{
	"idempotencyKey": "must be left out: each tick has a key of its own",
	"runAt":          "must be left out: the schedule says when",
	"delay":          "must be left out: the schedule says when",
	"hold":           "must be left out; pause the schedule instead",
	"expiresAt":      "must be left out: it would be the same for all jobs; set ttl instead",
	"tenant":         "must be left out: the jobs are of the schedule's tenant",
}

// Check returns the ticks of a schedule, or what is wrong with it. A fault of the job has a
// member below "job", such as "job/runAt". Whether its submission can be accepted must be
// checked besides.
func Check(s job.Schedule) (*Ticks, []job.Fault) {
	ticks, faults := New(s.Timing)
	wrong := func(member, format string, args ...any) {
		faults = append(faults, job.Fault{Member: member, Reason: fmt.Sprintf(format, args...)})
	}
	if reason := job.CheckScheduleName(s.Name); reason != "" {
		wrong("name", "%s", reason)
	}
	if s.Jitter < 0 || s.Jitter > job.MaxJitter {
		wrong("jitter", "must be a duration from 0s to %s, such as 30s", job.MaxJitter)
	}
	if !slices.Contains(job.Overlaps(), s.Overlap) {
		wrong("overlap", "must be one of allow, skip, queue, cancel_previous")
	}
	if !slices.Contains(job.CatchUps(), s.CatchUp) {
		wrong("catchUp", "must be one of none, last, all")
	}
	if s.CatchUpWindow < job.MinCatchUpWindow || s.CatchUpWindow > job.MaxCatchUpWindow {
		wrong("catchUpWindow", "must be a duration from %s to %s, such as 6h", job.MinCatchUpWindow, job.MaxCatchUpWindow)
	}
	members, isObject := objectOf(s.Job)
	if !isObject {
		wrong("job", `must be a submission, such as {"jobType": "REPORT", "payload": {}}`)
		return ticks, faults
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if why, is := decided[name]; is && !isNull(members[name]) {
			wrong("job/"+name, "%s", why)
		}
	}
	if isNull(members["uniqueBy"]) && addsTime(members["payload"]) {
		for _, name := range []string{"uniqueFor", "uniqueWhile"} {
			if !isNull(members[name]) {
				wrong("job/"+name, "needs uniqueBy, such as [\"/customerId\"]: with the %s of each tick in them, two payloads are never equal", scheduledTime)
			}
		}
	}
	for _, name := range job.DuplicateMembers(s.Job) {
		wrong("job/"+name, "is duplicated")
	}
	if keyed(s.Overlap) {
		for _, name := range []string{"concurrencyKey", "concurrencyLimit", "onConflict"} {
			if !isNull(members[name]) {
				wrong("job/"+name, "excludes overlap %s, which gives the jobs a concurrency key of the schedule", s.Overlap)
			}
		}
	}
	return ticks, faults
}

func isNull(value json.RawMessage) bool { return len(value) == 0 || bytes.Equal(value, []byte("null")) }

// keyed reports whether the jobs of a schedule have its concurrency key.
func keyed(overlap job.Overlap) bool {
	return overlap == job.OverlapQueue || overlap == job.OverlapCancelPrevious
}

// objectOf reads the members of an object.
func objectOf(text []byte) (members map[string]json.RawMessage, isObject bool) {
	return members, json.Unmarshal(text, &members) == nil && members != nil
}

// addsTime reports whether the payload gets the tick, if its job type allows that.
func addsTime(payload json.RawMessage) bool {
	members, isObject := objectOf(payload)
	_, has := members[scheduledTime]
	return isObject && !has
}

// scheduledTime is the member of a payload that has the tick.
const scheduledTime = "scheduledTime"

// WithScheduledTime adds the tick to the payload of a submission, as scheduledTime. added is
// false, and the text as it was, if the payload is no object or has that member.
func WithScheduledTime(text []byte, tick time.Time) (changed []byte, added bool) {
	members, isObject := objectOf(text)
	if !isObject {
		return text, false
	}
	payload, isObject := objectOf(members["payload"])
	if _, has := payload[scheduledTime]; has || !isObject {
		return text, false
	}
	// The rest of the payload stays to the letter: numbers, and the order of members.
	raw := strings.TrimRight(string(members["payload"]), " \t\r\n")
	comma := ","
	if len(payload) == 0 {
		comma = ""
	}
	members["payload"] = json.RawMessage(fmt.Sprintf(`%s%s"%s":"%s"}`,
		strings.TrimRight(raw[:len(raw)-1], " \t\r\n"), comma, scheduledTime, tick.UTC().Format(time.RFC3339)))
	return encode(members), true
}

// encode keeps the values to the letter, which json.Marshal would not.
func encode(members map[string]json.RawMessage) []byte {
	out := []byte("{")
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		quoted, _ := json.Marshal(name) // a text always marshals
		out = append(append(append(out, quoted...), ':'), members[name]...)
	}
	return append(out, '}')
}

// Complete makes the submission of a tick of what the job of the schedule has become: with
// the key of the tick, its time, and the concurrency key that the overlap needs.
func Complete(s job.Schedule, tick time.Time, one *job.Submission) {
	one.IdempotencyKey = job.TickKey(s.Name, tick)
	one.RunAt = tick.Add(Jitter(s.Tenant, s.Name, tick, s.Jitter))
	Share(s, one)
}

// Share gives a job of the schedule the concurrency key that the overlap needs.
func Share(s job.Schedule, one *job.Submission) {
	if keyed(s.Overlap) {
		one.Terms.ConcurrencyKey, one.Terms.ConcurrencyLimit, one.Terms.OnConflict = job.ScheduleKey(s.Name), 1, job.ConflictQueue
	}
}

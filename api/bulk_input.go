package api

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/api/submission"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// askedOperation is what a request asks for.
type askedOperation struct {
	job.OperationStart
	dryRun bool
	// after is where a dry run goes on counting; zero for a new one.
	after job.ID
	// countFor is how long it counts.
	countFor time.Duration
}

// countFor are the milliseconds for which a dry run counts at most, unless the request says.
const countFor, maxCountFor = 2000, 10_000

// actionStates are the states of jobs that an action applies to, as operators know them.
var actionStates = map[job.Action][]string{
	job.ActionRequeue: {"dead"},
	job.ActionCancel:  {"queued", "scheduled", "held", "retrying", "running"},
	job.ActionHold:    {"scheduled"},
	job.ActionRelease: {"scheduled", "held"},
	job.ActionEdit:    {"queued", "scheduled", "held", "retrying"},
}

// read reads and checks the operation in a body.
func (b *bulkRoutes) read(ctx context.Context, in *startInput) (*askedOperation, error) {
	var filter json.RawMessage
	sent := v1.OperationSpec{Rate: job.DefaultRate, CountFor: countFor}
	mistakes, err := readMembers(&in.call, b.memory, maxRuleBytes, map[string]bodyMember{
		"action": {&sent.Action, "one of requeue, cancel, hold, release, edit"}, "filter": {&filter, "an object"},
		"all": {&sent.All, "true or false"}, "priority": {&sent.Priority, wholeNumber(-32767, 32767)},
		"rate": {&sent.Rate, wholeNumber(1, job.MaxRate)}, "reason": {&sent.Reason, "a text"},
		"frozenAt": {&sent.FrozenAt, "an RFC 3339 time: that of a dry run"}, "dryRun": {&sent.DryRun, "true or false"},
		"countMilliseconds": {&sent.CountFor, wholeNumber(1, maxCountFor)}, "cursor": {&sent.Cursor, "a text"},
	})
	if err != nil {
		return nil, err
	}
	members := map[string]json.RawMessage{}
	if filter != nil {
		mistakes = append(mistakes, readFilter(filter, &sent.Filter, &members)...)
	}
	if mistakes = append(mistakes, mistakesOf(faultsOfOperation(&sent, len(members)), mistakes)...); len(mistakes) > 0 {
		return nil, invalid(mistakes...)
	}
	asked := &askedOperation{dryRun: sent.DryRun, countFor: time.Duration(sent.CountFor) * time.Millisecond}
	if asked.Operation, err = b.newOperation(ctx); err != nil {
		return nil, err
	}
	asked.Action, asked.Priority, asked.Rate, asked.Reason = sent.Action, sent.Priority, sent.Rate, sent.Reason
	if asked.Filter, err = filterOf(ctx, sent.Filter, sent.Action); err != nil {
		return nil, err
	}
	asked.Filter.FrozenAt = instantIn(sent.FrozenAt)
	if asked.after, err = asked.cursors(asked.Filter.FrozenAt).openID(sent.Cursor); err != nil {
		return nil, invalid(at(submission.Pointer("cursor"), "is not a cursor of a dry run with this action, filter and frozenAt"))
	}
	return asked, asked.keyed(in.request.Header.Values(keyHeader))
}

// cursors are those of dry runs that count the same jobs.
func (a *askedOperation) cursors(frozenAt time.Time) cursors {
	said, _ := json.Marshal(auditedFilter(v1.JobFilterOf(a.Filter))) // It always marshals.
	return cursorsFor("operation", a.Action, said, a.Filter.Payload, frozenAt.UTC().String())
}

// readFilter reads the member filter of a body.
func readFilter(text json.RawMessage, filter *v1.JobFilter, sent *map[string]json.RawMessage) (mistakes []v1.Mistake) {
	const instant = "an RFC 3339 time, such as \"2030-01-31T12:00:00Z\""
	if json.Unmarshal(text, sent) != nil {
		return []v1.Mistake{at(submission.Pointer("filter"), "must be an object")}
	}
	words := map[string]struct {
		into *string
		most int
	}{
		"jobType": {&filter.JobType, 200}, "tenant": {&filter.Tenant, 200}, "tag": {&filter.Tag, 100}, "worker": {&filter.Worker, 200},
		"errorCode": {&filter.ErrorCode, 200}, "payload": {&filter.Payload, 200}, "fingerprint": {&filter.Fingerprint, 16},
	}
	others := map[string]bodyMember{
		"state": {&filter.State, "a list of states, and not empty"}, "parentId": {&filter.ParentID, "the id of a job"},
		"createdFrom": {&filter.CreatedFrom, instant}, "createdBefore": {&filter.CreatedBefore, instant},
	}
	duplicates := job.DuplicateMembers(text)
	for _, name := range slices.Sorted(maps.Keys(*sent)) {
		place, value := submission.Pointer("filter", name), (*sent)[name]
		word, isWord := words[name]
		other, known := others[name]
		switch {
		case len(mistakes) == submission.MaxMistakes:
		case slices.Contains(duplicates, name):
			mistakes = append(mistakes, at(place, "is duplicated"))
		case string(value) == "null":
			mistakes = append(mistakes, at(place, "must not be null: leave it out"))
		case isWord:
			err := json.Unmarshal(value, word.into)
			if err != nil {
				err = fmt.Errorf("must be a text")
			} else {
				err = submission.CheckWord(*word.into, word.most)
			}
			if err == nil && name == "fingerprint" {
				err = new(fingerprintParam).UnmarshalText([]byte(*word.into))
			}
			if err != nil {
				mistakes = append(mistakes, at(place, err.Error()))
			}
		case !known:
			mistakes = append(mistakes, at(place, "is not known"))
		case json.Unmarshal(value, other.into) != nil || isNone(other.into):
			mistakes = append(mistakes, at(place, "must be "+other.must))
		}
	}
	return mistakes
}

// isNone reports whether a member was read that is what a filter has for no restriction.
func isNone(into any) bool {
	switch member := into.(type) {
	case **job.ID:
		return *member != nil && **member == job.ID{}
	case *[]string:
		return len(*member) == 0
	case **time.Time:
		return *member != nil && (*member).IsZero()
	default:
		return false
	}
}

// faultsOfOperation finds what is wrong with an operation whose filter has so many members.
func faultsOfOperation(sent *v1.OperationSpec, members int) (faults []job.Fault) {
	fault := func(member, reason string) { faults = append(faults, job.Fault{Member: member, Reason: reason}) }
	if !slices.Contains(job.Actions(), sent.Action) {
		fault("action", "must be one of requeue, cancel, hold, release, edit")
	}
	if members == 0 && !sent.All {
		fault("filter", "is empty: name at least one member, or set all to true to act on every job that the action applies to")
	}
	switch {
	case sent.Action == job.ActionEdit && sent.Priority == nil:
		fault("priority", "is required for the action edit")
	case sent.Action != job.ActionEdit && sent.Priority != nil:
		fault("priority", "goes with the action edit only")
	case sent.Priority != nil && *sent.Priority < -32767:
		fault("priority", "must be "+wholeNumber(-32767, 32767))
	}
	if sent.CountFor < 1 || sent.CountFor > maxCountFor {
		fault("countMilliseconds", "must be "+wholeNumber(1, maxCountFor))
	}
	if sent.Cursor != "" && !sent.DryRun {
		fault("cursor", "goes with dryRun only")
	}
	if sent.Rate < 1 || sent.Rate > job.MaxRate {
		fault("rate", "must be "+wholeNumber(1, job.MaxRate))
	}
	return append(faults, faultsOfReason(sent.Reason)...)
}

// filterOf is for the jobs that the caller may see, in the states that the action applies to.
func filterOf(ctx context.Context, sent v1.JobFilter, action job.Action) (job.Filter, error) {
	for i, state := range sent.State {
		if !slices.Contains(actionStates[action], state) {
			return job.Filter{}, invalid(at(submission.Pointer("filter", "state", fmt.Sprint(i)),
				fmt.Sprintf("must be one of %q: %s applies to no others", actionStates[action], action)))
		}
	}
	if sent.Payload != "" && !guard.SeesPayloads(ctx) {
		return job.Filter{}, problem(http.StatusForbidden, "to search payloads, these credentials need the scope payloads")
	}
	found := FindFilters{
		State: sent.State, JobType: sent.JobType, Tenant: sent.Tenant, Tag: sent.Tag, Worker: sent.Worker, ErrorCode: sent.ErrorCode,
		Payload: sent.Payload, Fingerprint: fingerprintParam{sent.Fingerprint},
		CreatedFrom: timeParam{instantIn(sent.CreatedFrom)}, CreatedBefore: timeParam{instantIn(sent.CreatedBefore)},
	}
	if len(found.State) == 0 {
		found.State = actionStates[action]
	}
	if sent.ParentID != nil {
		found.ParentID = idParam{*sent.ParentID}
	}
	return found.filter(ctx)
}

package main

import (
	"net/http"
	"slices"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

// view is what the API may say about a job: nothing, or its status. asked says that the
// cancel of a running job was acknowledged.
type view struct {
	status string
	asked  bool
}

// jobStates begin with that of a job that does not exist.
var jobStates = []any{
	view{},
	view{status: "PENDING"},
	view{status: "RUNNING"},
	view{status: "RUNNING", asked: true},
	view{status: "COMPLETED"},
	view{status: "FAILED"},
	view{status: "CANCELED"},
}

// soon lists what a job may become by itself, without a call: v is the first.
func (v view) soon() []view {
	switch {
	case v.status == "PENDING":
		return []view{v, {status: "RUNNING"}, {status: "COMPLETED"}, {status: "FAILED"}}
	case v.status == "RUNNING" && v.asked:
		return []view{v, {status: "COMPLETED"}, {status: "CANCELED"}}
	case v.status == "RUNNING":
		return []view{v, {status: "PENDING"}, {status: "COMPLETED"}, {status: "FAILED"}}
	}
	return []view{v}
}

// then applies what a call does to each state that the job may have by then, keeps those
// in which the answer is right, and returns each once.
func then(state any, does func(view) []view, status string) []any {
	var next []any
	for _, now := range state.(view).soon() {
		for _, after := range does(now) {
			for _, seen := range after.soon() {
				if (status == "" || seen.status == status) && !slices.Contains(next, any(seen)) {
					next = append(next, seen)
				}
			}
		}
	}
	return next
}

func unchanged(v view) []view { return []view{v} }

// unless returns v unless the status is one of these.
func unless(v view, statuses ...string) []view {
	if slices.Contains(statuses, v.status) {
		return nil
	}
	return []view{v}
}

func submitted(v view) []view {
	if v.status == "" {
		return []view{{status: "PENDING"}}
	}
	return []view{v}
}

func canceled(v view) []view {
	switch v.status {
	case "PENDING", "CANCELED":
		return []view{{status: "CANCELED"}}
	case "RUNNING":
		return []view{{status: "RUNNING", asked: true}}
	}
	return nil
}

func requeued(v view) []view {
	if v.status == "FAILED" {
		return []view{{status: "PENDING"}}
	}
	return nil
}

// maybe is what a call without an answer does: nothing, or what it was asked for.
func maybe(does func(view) []view) func(view) []view {
	return func(v view) []view { return append([]view{v}, does(v)...) }
}

// byJob gathers what was asked about each job of which more is known than its submission.
func (r *record) byJob() map[string][]operation {
	all := make(map[string][]operation)
	asked := make(map[string]bool)
	for i, call := range r.calls {
		if call.Verb == history.Get || call.Verb == history.Cancel || call.Verb == history.Requeue {
			if does, status := effectOf(call); does != nil {
				asked[call.JobID] = true
				all[call.JobID] = append(all[call.JobID], r.asOperation(i, does, status))
			}
		}
	}
	for i, call := range r.calls {
		for _, s := range call.Submissions {
			if asked[s.JobID] && call.Outcome == history.OK {
				all[s.JobID] = append(all[s.JobID], r.asOperation(i, submitted, s.Status))
			}
		}
	}
	// A job that expires is canceled without a call.
	for _, call := range r.calls {
		for _, s := range call.Submissions {
			if s.TTL > 0 {
				delete(all, s.JobID)
				delete(asked, s.JobID)
			}
		}
	}
	r.addRedrives(all)
	r.ledger(func(line string, row history.Row) {
		if id := row["job_id"]; asked[id] {
			status := stated(row["state"])
			all[id] = append(all[id], r.atEnd(line, func(state any) []any { return then(state, unchanged, status) }))
		}
	})
	return all
}

// addRedrives adds all redrives to the jobs that were requeued: nobody knows by which.
func (r *record) addRedrives(all map[string][]operation) {
	for i, call := range r.calls {
		if call.Verb != history.Redrive || call.Outcome == history.Refused {
			continue
		}
		for id := range all {
			if one := r.jobs[id]; one != nil && slices.ContainsFunc(one.steps, func(s *step) bool { return s.from == "dead" }) {
				all[id] = append(all[id], r.asOperation(i, maybe(requeued), ""))
			}
		}
	}
}

// effectOf is what a call does to a job, and the status in its answer; nil if nothing is
// known.
func effectOf(call history.Call) (does func(view) []view, status string) {
	absent := func(v view) []view {
		if v.status == "" {
			return []view{v}
		}
		return nil
	}
	if call.Outcome == history.Refused && call.Code == http.StatusNotFound {
		return absent, ""
	}
	switch {
	case call.Verb == history.Get && call.Outcome == history.OK:
		return unchanged, call.Status
	case call.Verb == history.Cancel && call.Outcome == history.OK:
		return canceled, call.Status
	case call.Verb == history.Cancel && call.Outcome == history.Unknown:
		return maybe(canceled), ""
	case call.Verb == history.Cancel && call.Code == http.StatusConflict:
		return func(v view) []view { return unless(v, "", "PENDING", "RUNNING", "CANCELED") }, ""
	case call.Verb == history.Requeue && call.Outcome == history.OK:
		return requeued, call.Status
	case call.Verb == history.Requeue && call.Outcome == history.Unknown:
		return maybe(requeued), ""
	case call.Verb == history.Requeue && call.Code == http.StatusBadRequest:
		return func(v view) []view { return unless(v, "", "FAILED") }, ""
	}
	return nil, ""
}

func (r *record) asOperation(call int, does func(view) []view, status string) operation {
	c := r.calls[call]
	return operation{
		from: c.Started, to: returned(c), line: callLine(call),
		weak: c.Verb == history.Get, makes: c.Verb == history.Submit || c.Verb == history.Batch,
		step: func(state any) []any { return then(state, does, status) },
	}
}

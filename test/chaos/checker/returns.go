package main

import (
	"cmp"
	"slices"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

// back is a moment at which a dead job came back to the queue.
type back struct {
	job  string
	at   history.Nanos
	used bool
}

// comeBack judges requeues and redrives that were acknowledged: the jobs did come back, each once
// for each call, while the call was made. What happened while nobody looked counts for any.
func (r *record) comeBack(f *findings) {
	var backs []back
	for _, one := range r.jobs {
		for _, s := range one.steps {
			if !s.unseen && s.from == "dead" && s.to == "queued" {
				backs = append(backs, back{job: one.id, at: s.committed})
			}
		}
	}
	slices.SortFunc(backs, func(a, b back) int { return cmp.Compare(a.at, b.at) })
	// take uses the first that happened during the call.
	take := func(call history.Call, job string) bool {
		from, _ := slices.BinarySearchFunc(backs, call.Started-slack, func(b back, at history.Nanos) int { return cmp.Compare(b.at, at) })
		for i := from; i < len(backs) && backs[i].at <= call.Returned+slack; i++ {
			if b := &backs[i]; !b.used && (job == "" || b.job == job) {
				b.used = true
				return true
			}
		}
		return false
	}
	judged := func(verb history.Verb) []int {
		var calls []int
		for i, call := range r.calls {
			if call.Verb == verb && call.Outcome == history.OK && !r.forgetful(call.Returned) && !r.nobodyLooked(call) {
				calls = append(calls, i)
			}
		}
		slices.SortStableFunc(calls, func(a, b int) int { return cmp.Compare(r.calls[a].Returned, r.calls[b].Returned) })
		return calls
	}
	for _, i := range judged(history.Requeue) {
		f.look()
		if call := r.calls[i]; !take(call, call.JobID) {
			f.add(call.JobID, []string{callLine(i)}, "its requeue was acknowledged, but it did not come back to the queue")
		}
	}
	for _, i := range judged(history.Redrive) {
		f.look()
		call, came := r.calls[i], 0
		for came < call.Count && take(call, "") {
			came++
		}
		if came < call.Count {
			f.add("", []string{callLine(i)}, "a redrive was acknowledged with %d jobs, and %d came back to the queue", call.Count, came)
		}
	}
}

// nobodyLooked reports whether the witness may have missed what happened during the call.
func (r *record) nobodyLooked(call history.Call) bool {
	return slices.ContainsFunc(r.gaps, func(g gap) bool { return g.from <= call.Returned+slack && g.to >= call.Started-slack })
}

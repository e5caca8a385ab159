package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

// successors is the table of the legal transitions. A job is running while it has a lease.
// The database lets an operator turn a retry into a dead job, but nothing in a run does.
var successors = map[string][]string{
	"":        {"created", "queued"},
	"created": {"queued", "canceled"},
	"queued":  {"created", "running", "retry", "canceled"},
	"running": {"succeeded", "retry", "dead", "queued", "canceled"},
	"retry":   {"queued", "canceled"},
	"dead":    {"queued"},
}

// reachable reports whether transitions lead from a state to another.
func reachable(from, to string) bool {
	seen := []string{from}
	for i := 0; i < len(seen); i++ {
		if seen[i] == to {
			return true
		}
		for _, next := range successors[seen[i]] {
			if !slices.Contains(seen, next) {
				seen = append(seen, next)
			}
		}
	}
	return false
}

// legal is V4. What leads on from an end is left to V5, and a job that is gone to V1.
func legal(r *record, f *findings) {
	for _, one := range r.jobs {
		for _, s := range one.steps {
			f.look()
			allowed := slices.Contains(successors[s.from], s.to) || s.unseen && reachable(s.from, s.to)
			if s.from != s.to && s.to != "" && !ended(s.from) && !allowed {
				f.add(one.id, []string{s.line}, "became %s from %s", s.to, cmp.Or(s.from, "nothing"))
			}
			if lists := strings.Join(s.listed, " and "); !inItsList(s, lists) {
				f.add(one.id, []string{s.line}, "is %s, but in %s", cmp.Or(s.to, "gone"), cmp.Or(lists, "no list"))
			}
		}
	}
	r.lastIsRow(f)
}

// inItsList reports whether a job is in the list that goes with its state. One that waits for
// others of its workflow is in none.
func inItsList(s *step, lists string) bool {
	switch s.to {
	case "queued":
		return lists == "ready" || lists == "parked"
	case "retry":
		return lists == "timers"
	case "created":
		return lists == "timers" || lists == "" && s.after["followed"] != ""
	case "dead":
		return lists == "dead_letters"
	}
	return lists == ""
}

// lastIsRow compares what the witness saw last with the tables at the end.
func (r *record) lastIsRow(f *findings) {
	end := empty()
	for i, row := range r.final {
		job := row.Row["job_id"]
		switch row.Table {
		case "jobs":
			end.ledger[job] = row.Row
			seen := r.last.ledger[job]
			for _, column := range []string{"state", "attempt", "fence", "lease_id", "max_attempts", "interruptions"} {
				if seen[column] != row.Row[column] {
					f.add(job, []string{finalLine(i)}, "%s is %q in the end, but the witness saw %q last", column, row.Row[column], seen[column])
				}
			}
		case "leases":
			end.leases[job] = &lease{}
			if seen := r.last.leases[job]; seen == nil || seen.id != row.Row["lease_id"] {
				f.add(job, []string{finalLine(i)}, "has a lease in the end that the witness did not see")
			}
		case "ready", "parked", "timers", "dead_letters":
			end.lists[row.Table][job]++
		case "unsuccessful_attempts":
			end.note(row.Row, false)
		}
	}
	r.lastIsHistory(f, end)
	for job := range r.last.ledger {
		if end.ledger[job] == nil {
			continue // V1
		}
		if end.leases[job] == nil && r.last.leases[job] != nil {
			f.add(job, []string{r.last.leases[job].line}, "has no lease in the end, but the witness did not see it go")
		}
		if a, b := end.listed(job), r.last.listed(job); !slices.Equal(a, b) {
			f.add(job, nil, "is in %v in the end, but the witness saw it in %v last", a, b)
		}
	}
}

// lastIsHistory compares the attempts that the witness saw end without success with those that are
// recorded at the end.
func (r *record) lastIsHistory(f *findings, end *tables) {
	for at, seen := range r.last.history {
		row := end.history[at]
		if end.ledger[at.job] == nil { // V1
			continue
		}
		for _, column := range []string{"outcome", "lease_id", "worker_id"} {
			if seen[column] != row[column] {
				f.add(at.job, nil, "%s of the attempt with the fence %d is %q in the end, but the witness saw %q", column, at.fence, row[column], seen[column])
			}
		}
	}
	for at := range end.history {
		if r.last.history[at] == nil {
			f.add(at.job, nil, "the attempt with the fence %d is in the history, but the witness did not see that", at.fence)
		}
	}
}

// final is V5.
func final(r *record, f *findings) {
	requeues := make(map[string][]history.Call)
	var redrives []history.Call
	for _, call := range r.calls {
		switch {
		case call.Outcome == history.Refused:
		case call.Verb == history.Requeue:
			requeues[call.JobID] = append(requeues[call.JobID], call)
		case call.Verb == history.Redrive:
			redrives = append(redrives, call)
		}
	}
	for _, one := range r.jobs {
		for _, s := range one.steps {
			if !ended(s.from) || s.to == "" {
				continue
			}
			f.look()
			switch {
			case s.to == s.from:
				for _, column := range []string{"finished_at", "fence", "lease_id", "attempt"} {
					if s.before[column] != s.after[column] && !(s.unseen && s.from == "dead") {
						f.add(one.id, []string{s.line}, "was %s, and %s changed from %q to %q", s.from, column, s.before[column], s.after[column])
					}
				}
			case s.from != "dead" || s.to != "queued" && !s.unseen:
				f.add(one.id, []string{s.line}, "was %s and became %s", s.from, s.to)
			default:
				asked := func(call history.Call) bool { return s.unseen || call.Started <= s.committed+slack }
				if !slices.ContainsFunc(requeues[one.id], asked) && !slices.ContainsFunc(redrives, asked) {
					f.add(one.id, []string{s.line}, "was dead and became %s, but nobody had requeued it", s.to)
				}
			}
		}
	}
}

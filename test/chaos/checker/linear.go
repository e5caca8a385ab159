package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

// patience is how long the search for an order may take for one job or key. It takes
// milliseconds; a search that does not end is a violation.
const patience = 5 * time.Minute

// operation is a call that concerns one job or key, or what was seen at the end.
type operation struct {
	from, to history.Nanos
	// weak says that it only reads: what it saw may be lost in a failover.
	weak bool
	// makes says that the job or key is new, unless it was there.
	makes bool
	line  string
	// step is what the operation does to the states in which the job or key may be before:
	// to which states it may lead, with the answer that it got. None is a contradiction.
	step func(state any) []any
}

// linearizable is V10. What clients may have read before a failover, and lost by it, is
// judged only with what they did between the same failovers.
func linearizable(r *record, f *findings) {
	for about, operations := range r.byKey() {
		r.ordered(f, "", fmt.Sprintf("the key %q of tenant %q", about.key, about.tenant), operations, keyStates)
	}
	for id, operations := range r.byJob() {
		r.ordered(f, id, "the job", operations, jobStates)
	}
	r.canceledStays(f)
	r.canceledIsTold(f)
	r.comeBack(f)
	r.asSeen(f)
}

// ordered judges the operations on one thing, which is in the first of the states before
// any of them, unless that may be forgotten or the operations do not include the one that makes it.
func (r *record) ordered(f *findings, job, what string, operations []operation, states []any) {
	f.look()
	cuts := r.cuts()
	made := slices.ContainsFunc(operations, func(o operation) bool { return o.makes && !r.forgetful(o.from) })
	lasting := slices.DeleteFunc(slices.Clone(operations), func(o operation) bool {
		return o.weak && len(cuts) > 0 || r.forgetful(o.from)
	})
	first := states
	if made {
		first = states[:1]
	}
	r.search(f, job, what, lasting, first)
	if len(cuts) == 0 || !slices.ContainsFunc(operations, func(o operation) bool { return o.weak }) {
		return
	}
	for i := range len(cuts) + 1 {
		from, to := history.Nanos(0), history.Infinity
		if i > 0 {
			from = cuts[i-1].Healed
		}
		if i < len(cuts) {
			to = cuts[i].Injected
		}
		r.between(f, job, what, operations, states, from, to)
	}
}

// between judges the operations between two cuts, reads included. If a write may have taken
// effect on either side of a cut, nothing is known about either.
func (r *record) between(f *findings, job, what string, operations []operation, states []any, from, to history.Nanos) {
	var within []operation
	for _, o := range operations {
		never := o.to == history.Infinity
		switch {
		case o.from >= from && o.from < to && (o.to < to || never):
			within = append(within, o)
		case !o.weak && o.from < to && o.to >= from:
			return
		}
	}
	r.search(f, job, what, within, states)
}

// cuts are the faults after which a read may be older than one before, in order.
func (r *record) cuts() []history.Fault {
	cuts := slices.DeleteFunc(slices.Clone(r.faults), func(fault history.Fault) bool {
		return fault.Error != "" || !fault.Failover && !fault.Crash
	})
	slices.SortFunc(cuts, func(a, b history.Fault) int { return cmp.Compare(a.Injected, b.Injected) })
	return cuts
}

func (r *record) search(f *findings, job, what string, operations []operation, first []any) {
	if len(operations) == 0 {
		return
	}
	model := porcupine.NondeterministicModel{
		Init:  func() []any { return first },
		Step:  func(state, input, _ any) []any { return input.(operation).step(state) },
		Equal: func(a, b any) bool { return a == b },
	}
	log := make([]porcupine.Operation, len(operations))
	evidence := make([]string, len(operations))
	for i, o := range operations {
		log[i] = porcupine.Operation{Input: o, Call: int64(o.from), Return: int64(o.to)}
		evidence[i] = o.line
	}
	switch porcupine.CheckOperationsTimeout(model.ToModel(), log, patience) {
	case porcupine.Ok:
	case porcupine.Illegal:
		f.add(job, evidence, "no order of the calls explains the answers about %s", what)
	case porcupine.Unknown:
		f.add(job, evidence, "nothing was found out about the order of the calls for %s in %s", what, patience)
	}
}

// returned is when a call was over: never, if nobody knows what came of it.
func returned(call history.Call) history.Nanos {
	if call.Outcome == history.Unknown {
		return history.Infinity
	}
	return call.Returned
}

// tenantKey is a key of a tenant.
type tenantKey struct{ tenant, key string }

// A key belongs to no job, to one whose id nobody knows, or to the job with that id.
const (
	noJob   = "none"
	someJob = "some"
)

var keyStates = []any{noJob, someJob}

// byKey gathers what was asked about each key.
func (r *record) byKey() map[tenantKey][]operation {
	all := make(map[tenantKey][]operation)
	add := func(key tenantKey, o operation) { all[key] = append(all[key], o) }
	for i, call := range r.calls {
		o := operation{from: call.Started, to: returned(call), line: callLine(i), makes: true}
		for _, s := range call.Submissions {
			switch {
			case s.Key == "" || s.Duplicate || call.Outcome == history.Refused:
				continue
			case call.Outcome == history.Unknown:
				o.step = func(state any) []any {
					if state == noJob {
						return []any{noJob, someJob}
					}
					return []any{state}
				}
			default:
				o.step = func(state any) []any { return owns(state, s.JobID, true) }
			}
			add(tenantKey{call.Tenant, s.Key}, o)
		}
		if call.Verb == history.Lookup && call.Outcome == history.OK {
			o.weak, o.makes = true, false
			o.step = func(state any) []any { return owns(state, call.Found, false) }
			add(tenantKey{call.Tenant, call.Key}, o)
		}
	}
	there := make(map[tenantKey]bool)
	r.ledger(func(line string, row history.Row) {
		key := tenantKey{row["tenant"], row["idempotency_key"]}
		if there[key] = true; all[key] != nil {
			add(key, r.atEnd(line, func(state any) []any { return owns(state, row["job_id"], false) }))
		}
	})
	for key := range all {
		if !there[key] {
			add(key, r.atEnd(history.FinalFile, func(state any) []any { return owns(state, "", false) }))
		}
	}
	return all
}

// atEnd is an operation at the end of the run.
func (r *record) atEnd(line string, step func(any) []any) operation {
	return operation{from: r.run.Ended, to: r.run.Ended, line: line, step: step}
}

// owns is what a key may belong to after an answer that it belongs to the job; made says that
// the call makes the job if the key is free.
func owns(state any, id string, made bool) []any {
	switch {
	case id == "" && state == noJob:
		return []any{noJob}
	case id == "":
		return nil
	case state == noJob && made, state == someJob, state == id:
		return []any{id}
	}
	return nil
}

// canceledStays judges what happens to a job after its cancel was acknowledged: it ends as
// canceled, or it succeeds because its attempt was running. Nothing is tried again.
func (r *record) canceledStays(f *findings) {
	for i, call := range r.calls {
		one := r.jobs[call.JobID]
		if call.Verb != history.Cancel || call.Outcome != history.OK || one == nil || r.forgetful(call.Returned) {
			continue
		}
		for _, s := range one.steps {
			if s.unseen || s.committed <= call.Returned+slack || s.to == s.from {
				continue
			}
			if s.to == "canceled" || s.to == "succeeded" && s.from == "running" {
				break
			}
			f.add(call.JobID, []string{callLine(i), s.line}, "its cancel was acknowledged, and it became %s from %s", s.to, s.from)
			break
		}
	}
}

// canceledIsTold judges handlers that ran when their job's cancel was acknowledged: an orchestrator
// learns of it when it renews its leases, three times in each, and the handler stops.
func (r *record) canceledIsTold(f *findings) {
	for i, call := range r.calls {
		one := r.jobs[call.JobID]
		if call.Verb != history.Cancel || call.Outcome != history.OK || call.Status != "RUNNING" || one == nil || r.forgetful(call.Returned) {
			continue
		}
		within := call.Returned + history.Nanos(r.run.Lease/3+r.run.Bounds.Overlap)
		for _, s := range one.steps {
			if s.holds == nil || s.holds.over != nil {
				continue
			}
			did := r.handled[attempt{one.id, s.holds.fence}]
			if did.began == nil || did.ended == nil || did.began.At > call.Started || !slices.Contains(r.run.Obedient, did.began.JobType) {
				continue
			}
			f.look()
			at := did.ended.At
			if at > within+r.stalled(call.Returned, at) && !r.disturbed(call.Returned, at) {
				f.add(one.id, []string{callLine(i), did.ended.at}, "its cancel was acknowledged, and its handler went on until %s", at.Time().Format(time.RFC3339Nano))
				break
			}
		}
	}
}

package main

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

// inForce is how long it takes until every orchestrator does what an operator has asked for.
const inForce = history.Nanos(time.Second)

// started is an attempt whose handler began.
type started struct {
	lease *lease
	began *effect
	// over is when its lease was gone: at once if nobody saw that.
	over history.Nanos
}

// startedAttempts are in the order of their claims.
func (r *record) startedAttempts() []started {
	var all []started
	for id, one := range r.jobs {
		for i, s := range one.steps {
			if s.holds == nil || s.holds == s.held || s.holds.over != nil || s.unseen {
				continue
			}
			began := r.handled[attempt{id, s.holds.fence}].began
			if began == nil {
				continue
			}
			now := started{lease: s.holds, began: began}
			for _, later := range one.steps[i+1:] {
				if now.over = later.committed; later.holds == nil || later.unseen {
					break
				}
			}
			all = append(all, now)
		}
	}
	slices.SortFunc(all, func(a, b started) int { return cmp.Compare(a.lease.claimed, b.lease.claimed) })
	return all
}

// asOperated judges what operators have asked for: while a type is paused, none of its jobs starts,
// and where a limit is set, no more run at once. What one fault was asked for is judged only while no
// other could keep orchestrators from knowing it.
func (r *record) asOperated(f *findings) {
	all := r.startedAttempts()
	tenants := make(map[string]string)
	r.ledger(func(_ string, row history.Row) { tenants[row["job_id"]] = row["tenant"] })
	for i, fault := range r.faults {
		if fault.Error != "" || fault.Standing == 0 {
			continue
		}
		scope, name, _ := strings.Cut(fault.Target, " ")
		limit, limited := fault.Parameters[history.Concurrency]
		var within []started
		for _, s := range all {
			switch {
			case fault.Kind == "pause-all",
				fault.Kind == "pause-type" && s.began.JobType == fault.Target,
				limited && scope == "type" && s.began.JobType == name,
				limited && scope == "tenant" && tenants[s.began.JobID] == name:
				within = append(within, s)
			}
		}
		if most, err := strconv.Atoi(limit); limited && err == nil {
			r.atMost(f, i, within, most)
		} else if !limited {
			r.noneStarts(f, i, within)
		}
	}
}

// noneStarts judges a pause.
func (r *record) noneStarts(f *findings, fault int, attempts []started) {
	for _, s := range attempts {
		if r.holdsAt(fault, s.began.At) {
			f.add(s.began.JobID, []string{faultLine(fault), s.began.at}, "began although %s was paused", r.faults[fault].Target)
		}
	}
}

// atMost judges a limit: of the jobs that are claimed while it is in force, no more run at once. Those
// that ran before may have been admitted without it, and take no slot.
func (r *record) atMost(f *findings, fault int, attempts []started, most int) {
	for i, s := range attempts {
		if !r.holdsAt(fault, s.lease.claimed) {
			continue
		}
		f.look()
		running := 0
		for _, before := range attempts[:i] {
			if before.over > s.lease.claimed+slack && r.holdsAt(fault, before.lease.claimed) {
				running++
			}
		}
		if running >= most {
			f.add(s.began.JobID, []string{faultLine(fault), s.lease.line}, "began although %d of %s ran, and %d may", running, r.faults[fault].Target, most)
		}
	}
}

// holdsAt reports whether what an operator has asked for is in force at that time, on every
// orchestrator.
func (r *record) holdsAt(fault int, at history.Nanos) bool {
	asked := r.faults[fault]
	since := asked.Standing + inForce + history.Nanos(r.run.Bounds.Overlap)
	if at <= since || at >= asked.Healing-slack || at <= since+r.stalled(asked.Standing, at) {
		return false
	}
	return !r.disturbed(asked.Standing, at)
}

// disturbed reports whether between the times, or shortly before, a fault may have kept an
// orchestrator from knowing what was asked for.
func (r *record) disturbed(from, to history.Nanos) bool {
	return slices.ContainsFunc(r.faults, func(fault history.Fault) bool {
		return !operated(fault) && !fault.PluginOnly && fault.Injected <= to && fault.Healed+history.Nanos(r.run.Lease) >= from
	})
}

// operated reports whether the fault is what an operator may do.
func operated(fault history.Fault) bool {
	return strings.HasPrefix(fault.Kind, "pause-") || strings.HasPrefix(fault.Kind, "limit-") || fault.Kind == "schedule"
}

// everyTick judges schedules each of whose ticks makes a job: from the first tick that did to the
// last, none is missing. A schedule that a late call may have set again may have a hole.
func (r *record) everyTick(f *findings) {
	ticks := make(map[string][]history.Nanos)
	r.ledger(func(_ string, row history.Row) {
		rest, ok := strings.CutPrefix(row["idempotency_key"], "schedule/")
		name, tick, _ := strings.Cut(rest, "/")
		if at, err := time.Parse(time.RFC3339, tick); ok && err == nil {
			ticks[name] = append(ticks[name], history.Nanos(at.UnixNano()))
		}
	})
	for i, fault := range r.faults {
		every, err := time.ParseDuration(fault.Parameters[history.Every])
		if err != nil || fault.Error != "" || fault.Parameters[history.Unanswered] != "" || r.forgetful(fault.Standing) {
			continue
		}
		all := ticks[fault.Target]
		slices.Sort(all)
		for n := 1; n < len(all); n++ {
			f.look()
			if missing := all[n-1] + history.Nanos(every); all[n] != missing {
				f.add("", []string{faultLine(i)}, "the schedule %s made no job for its tick at %s", fault.Target, missing.Time().Format(time.RFC3339))
			}
		}
	}
}

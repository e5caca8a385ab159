package main

import (
	"slices"
	"strings"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

// oneHolder is V6.
func oneHolder(r *record, f *findings) {
	ids := make(map[string]*lease)
	for _, l := range r.leases {
		f.look()
		if other := ids[l.id]; other != nil {
			f.add(l.job, []string{other.line, l.line}, "the lease id %s was issued twice", l.id)
		}
		ids[l.id] = l
		for _, line := range l.revived {
			f.add(l.job, []string{l.line, line}, "the lease %s was renewed after it had expired", l.id)
		}
		if l.over != nil && l.over.expires > l.committed {
			f.add(l.job, []string{l.over.line, l.line}, "the lease %s was taken over before it had expired", l.over.id)
		}
		if l.over != nil && l.over.fence > l.fence {
			f.add(l.job, []string{l.over.line, l.line}, "the fence fell from %d to %d", l.over.fence, l.fence)
		}
	}
	for _, one := range r.jobs {
		var highest int64
		for _, s := range one.steps {
			claimed := s.holds != nil && s.holds != s.held && s.holds.over == nil
			if claimed && s.held != nil && !s.unseen {
				f.add(one.id, []string{s.held.line, s.line}, "was claimed while it was held")
			}
			if claimed && s.holds.fence <= highest {
				f.add(one.id, []string{s.line}, "was claimed with the fence %d after %d", s.holds.fence, highest)
			}
			if s.holds != nil {
				highest = max(highest, s.holds.fence)
			}
			if fence, err := s.after.Int("fence"); err == nil {
				highest = max(highest, fence)
			}
		}
	}
	r.oneHandler(f)
}

// oneHandler judges by what handlers wrote: each runs under a lease, no fence is given to
// two, and none goes on beside the next.
func (r *record) oneHandler(f *findings) {
	known := make(map[attempt]*lease)
	for _, l := range r.leases {
		if at := (attempt{l.job, l.fence}); known[at] == nil || known[at].orphaned {
			known[at] = l
		}
	}
	began := make(map[string][]effect)
	type event struct {
		attempt
		history.EffectEvent
	}
	first := make(map[event]effect)
	for _, e := range r.effects {
		is := event{attempt{e.JobID, e.Fence}, e.Event}
		if other, twice := first[is]; twice && !r.forgetful(min(other.At, e.At)) {
			f.add(e.JobID, []string{other.at, e.at}, "what an attempt does once was done twice with the fence %d: %q", e.Fence, e.Event)
		}
		first[is] = e
		if e.Event != history.Began {
			continue
		}
		f.look()
		began[e.JobID] = append(began[e.JobID], e)
		switch l := known[is.attempt]; {
		case l == nil && !r.unseenFence(e.JobID, e.Fence):
			f.add(e.JobID, []string{e.at}, "an attempt began with the fence %d, for which there was no lease", e.Fence)
		case l != nil && l.orphaned && r.run.Synchronous:
			f.add(e.JobID, []string{l.line, e.at}, "an attempt began under a lease that the standby did not have")
		case l != nil && e.At+slack < l.claimed:
			f.add(e.JobID, []string{l.line, e.at}, "an attempt began before it was claimed")
		}
	}
	if r.run.Synchronous { // or else a fence may be given to two
		r.asClaimed(f, known)
	}
	if r.run.Bounds.Overlap > 0 {
		r.inTime(f, known, began)
		r.outlived(f, known, began)
		r.timeouts(f, known)
	}
}

// asClaimed compares what handlers were told with the claim: the type of the job, which attempt it
// is, and whose lease it has.
func (r *record) asClaimed(f *findings, known map[attempt]*lease) {
	types, number := make(map[string]string), make(map[attempt]int64)
	r.ledger(func(_ string, row history.Row) { types[row["job_id"]] = row["job_type"] })
	r.claims(func(one *story, s *step) {
		before, _ := s.after.Int("attempt")
		number[attempt{one.id, s.holds.fence}] = before + 1
	})
	for _, e := range r.effects {
		at := attempt{e.JobID, e.Fence}
		// A lease that was there when somebody looked again may have been taken over by then.
		if l := known[at]; l != nil && !l.orphaned && l.committed != 0 {
			f.look()
			if worker, _, _ := strings.Cut(l.worker, "/"); worker != e.by {
				f.add(e.JobID, []string{l.line, e.at}, "an attempt of %s ran at %s", worker, e.by)
			}
		}
		if want := types[e.JobID]; want != "" && want != e.JobType {
			f.add(e.JobID, []string{e.at}, "the handler of %s ran a job of %s", e.JobType, want)
		}
		if want := number[at]; want != 0 && want != int64(e.Attempt) {
			f.add(e.JobID, []string{e.at}, "a handler was told that it is attempt %d, and it was %d", e.Attempt, want)
		}
	}
}

// inTime judges handlers that go on: beyond their lease, or beside the next attempt at the job.
func (r *record) inTime(f *findings, known map[attempt]*lease, began map[string][]effect) {
	for _, e := range r.effects {
		l := known[attempt{e.JobID, e.Fence}]
		if l != nil && !l.orphaned && r.tooLate(l, l.expires, e.At) {
			f.add(e.JobID, []string{l.line, e.at}, "the attempt with the fence %d went on after its lease had expired", e.Fence)
		}
		for _, next := range began[e.JobID] {
			if next.Fence > e.Fence && r.tooLate(l, next.At, e.At) {
				f.add(e.JobID, []string{next.at, e.at}, "the attempt with the fence %d went on after that with the fence %d had begun", e.Fence, next.Fence)
			}
		}
	}
}

// timeouts judges handlers that go on when their time is over: they are asked to stop, and
// killed soon after that.
func (r *record) timeouts(f *findings, known map[attempt]*lease) {
	for _, e := range r.effects {
		began, timeout := r.handled[attempt{e.JobID, e.Fence}].began, r.run.Timeouts[e.JobType]
		if e.Event == history.Began || began == nil || timeout == 0 {
			continue
		}
		f.look()
		if over := began.At + history.Nanos(timeout); r.tooLate(known[attempt{e.JobID, e.Fence}], over, e.At) {
			f.add(e.JobID, []string{began.at, e.at}, "the attempt with the fence %d went on after its %s were over", e.Fence, timeout)
		}
	}
}

// outlived judges the processes of attempts of which nobody knows the end: none lives on beside
// the next attempt at the job.
func (r *record) outlived(f *findings, known map[attempt]*lease, began map[string][]effect) {
	for job, attempts := range began {
		for _, e := range attempts {
			at := attempt{job, e.Fence}
			l, i := known[at], r.processOf(e)
			if r.handled[at].ended != nil || l == nil || i < 0 {
				continue
			}
			f.look()
			for _, next := range attempts { // V12 judges processes that are never gone
				if next.Fence > e.Fence && r.tooLate(l, next.At, r.processes[i].Ended) {
					f.add(job, []string{e.at, next.at, processLine(i)}, "the process of the attempt with the fence %d went on after that with the fence %d had begun", e.Fence, next.Fence)
				}
			}
		}
	}
}

// tooLate reports whether something of the lease's attempt happened too long after it had to be
// over. More time is allowed while the machine was busy, and any while processes of the lease's
// worker stood still. What comes more than two leases later is no excuse.
func (r *record) tooLate(l *lease, over, at history.Nanos) bool {
	soon := min(at, over+2*history.Nanos(r.run.Lease))
	return at > over+history.Nanos(r.run.Bounds.Overlap)+r.stalled(over, soon) && !r.paused(l, over, soon)
}

// unseenFence reports whether the lease may have been issued while nobody looked.
func (r *record) unseenFence(job string, fence int64) bool {
	one := r.jobs[job]
	return one != nil && slices.ContainsFunc(one.steps, func(s *step) bool {
		before, _ := s.before.Int("fence")
		after, _ := s.after.Int("fence")
		return s.unseen && fence > before && fence <= after
	})
}

// paused reports whether processes of the lease's worker stood still between the times, or
// shortly before. Those of any worker may have been, if nobody saw the lease.
func (r *record) paused(l *lease, from, to history.Nanos) bool {
	return slices.ContainsFunc(r.faults, func(fault history.Fault) bool {
		target, _, _ := strings.Cut(fault.Target, " ") // what follows is a plugin
		hit := l == nil || strings.HasPrefix(l.worker, target+"/")
		return hit && fault.Pause && fault.Error == "" && fault.Injected <= to && fault.Healed+history.Nanos(r.run.Lease) >= from
	})
}

// stalls is how much longer something may take for each moment in which the machine did not run
// what was to run: several processes must be run, one after the other.
const stalls = 10

// stalled is how much longer something may take between the times, or shortly before, because
// the machine was busy.
func (r *record) stalled(from, to history.Nanos) (longer history.Nanos) {
	for _, s := range r.timings.Lag.Stalls {
		if s.From <= to && s.To+history.Nanos(r.run.Lease) >= from {
			longer += stalls * (s.To - s.From)
		}
	}
	return longer
}

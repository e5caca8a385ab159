package main

import (
	"slices"
	"time"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

// moment is when a job came to a status that clients see.
type moment struct {
	at     history.Nanos
	status string
}

// moments are those of a job, in order. What became of it while nobody looked counts from
// when the next change of any job was seen.
func (r *record) moments(one *story) []moment {
	var all []moment
	for _, s := range one.steps {
		now := moment{s.committed, stated(s.to)}
		if s.unseen {
			now.at = r.gaps[s.generation-1].to
		}
		if len(all) == 0 || all[len(all)-1].status != now.status {
			all = append(all, now)
		}
	}
	return all
}

// unwritten is for how long a server may have something in memory only that clients have read.
// PostgreSQL says that this is up to three times wal_writer_delay.
const unwritten = history.Nanos(time.Second)

// reads are the calls of Get that can be judged: the witness saw all that they may have read.
// Shortly before a failover or a crash, clients may read what is lost by it.
func (r *record) reads() []int {
	cuts := r.cuts()
	var found []int
	for i, call := range r.calls {
		if call.Verb != history.Get || call.Outcome != history.OK || r.jobs[call.JobID] == nil || r.forgetful(call.Returned) || r.nobodyLooked(call) {
			continue
		}
		cut := slices.ContainsFunc(cuts, func(fault history.Fault) bool {
			return fault.Injected-unwritten <= call.Returned && fault.Healed+slack >= call.Started
		})
		lost := slices.ContainsFunc(r.undone[call.JobID], func(g gap) bool { return g.from <= call.Returned+slack && g.to >= call.Started-slack })
		if !cut && !lost {
			found = append(found, i)
		}
	}
	return found
}

// asSeen compares what clients read with what the witness saw: the job had that status at some time
// while the call was made.
func (r *record) asSeen(f *findings) {
	for _, i := range r.reads() {
		f.look()
		call := r.calls[i]
		all := r.moments(r.jobs[call.JobID])
		if !slices.ContainsFunc(r.visible(all, call), func(m moment) bool { return m.status == call.Status }) {
			f.add(call.JobID, []string{callLine(i)}, "was read as %s, which it was not while that was read", call.Status)
		}
	}
}

// visible are the moments that a call may have seen the status of.
func (r *record) visible(all []moment, call history.Call) []moment {
	from, to := 0, 0
	for i, m := range all {
		if m.at <= call.Returned+slack {
			to = i + 1
		}
		if m.at+slack < call.Started {
			from = i
		}
	}
	// The last change may not be visible yet: a commit is written some time before others
	// see it. The one before is, or else nobody could have made the last.
	if from > 0 && r.hidden(all[from].at, call.Started) {
		from--
	}
	return all[from:max(from, to)]
}

// hidden reports whether a change that was committed at a time may not have been visible at another:
// commits wait for the standby, and this may be held up by a fault.
func (r *record) hidden(committed, at history.Nanos) bool {
	return at <= committed+history.Nanos(r.run.Bounds.Overlap)+r.stalled(committed, at) || slices.ContainsFunc(r.faults, func(fault history.Fault) bool {
		return fault.Error == "" && !fault.PluginOnly && fault.Injected <= committed+slack && fault.Healed+history.Nanos(r.run.Lease) >= at
	})
}

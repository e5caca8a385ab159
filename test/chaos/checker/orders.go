package main

import (
	"slices"
	"time"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

// delayed judges jobs that were to begin later, unless somebody may have held or released them
// meanwhile.
func (r *record) delayed(f *findings) {
	delays, held := make(map[string]history.Nanos), make(map[string]bool)
	for _, call := range r.calls {
		holds := call.Verb == history.Hold || call.Verb == history.Release
		held[call.JobID] = held[call.JobID] || holds && call.Outcome != history.Refused
		for _, s := range call.Submissions {
			delays[s.Mark] = history.Nanos(s.Delay)
		}
	}
	r.claims(func(one *story, s *step) {
		after := delays[s.before.Mark()]
		if after == 0 || held[one.id] {
			return
		}
		f.look()
		created, err := s.before.Time("created_at")
		if err != nil || s.holds.claimed < created+after {
			f.add(one.id, []string{s.line}, "was claimed less than %s after %s, when it was submitted", time.Duration(after), s.before["created_at"])
		}
	})
}

// notWhileHeld judges jobs that somebody has held: none starts before somebody asks for its
// release, after each hold anew. A call without an answer may release a job at any later time.
func (r *record) notWhileHeld(f *findings) {
	holds, releases := make(map[string][]int), make(map[string][]history.Call)
	for i, call := range r.calls {
		switch {
		case call.Verb == history.Hold && call.Outcome == history.OK && !r.forgetful(call.Returned):
			holds[call.JobID] = append(holds[call.JobID], i)
		case call.Verb == history.Release && call.Outcome != history.Refused:
			releases[call.JobID] = append(releases[call.JobID], call)
		}
	}
	r.claims(func(one *story, s *step) {
		for _, i := range holds[one.id] {
			hold := r.calls[i]
			if s.holds.claimed < hold.Returned+slack {
				continue
			}
			f.look()
			released := func(call history.Call) bool {
				return call.Started <= s.holds.claimed+slack && returned(call) >= hold.Started
			}
			if !slices.ContainsFunc(releases[one.id], released) {
				f.add(one.id, []string{callLine(i), s.line}, "was claimed although it was held")
			}
		}
	})
}

// inOrder judges workflows: a job starts when those that it comes after have succeeded, or were
// skipped.
func (r *record) inOrder(f *findings) {
	after := make(map[string][]string)
	for _, call := range r.calls {
		for _, s := range call.Submissions {
			after[s.Mark] = s.After
		}
	}
	jobs := r.byMark()
	r.claims(func(one *story, s *step) {
		for _, mark := range after[s.before.Mark()] {
			f.look()
			if before := jobs[mark]; before == nil || !before.over(s) {
				f.add(one.id, []string{s.line}, "was claimed before %q had ended", mark)
			}
		}
	})
}

// over reports whether the job had succeeded or was canceled when the step was committed.
func (one *story) over(s *step) bool {
	return slices.ContainsFunc(one.steps, func(past *step) bool {
		earlier := past.generation < s.generation || past.generation == s.generation && (past.unseen || past.lsn < s.lsn)
		return earlier && (past.to == "succeeded" || past.to == "canceled")
	})
}

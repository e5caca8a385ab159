package main

import (
	"slices"
	"time"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

// delayed judges jobs that were to begin later, unless somebody has held them meanwhile.
func (r *record) delayed(f *findings) {
	delays, held := make(map[string]history.Nanos), make(map[string]bool)
	for _, call := range r.calls {
		held[call.JobID] = held[call.JobID] || call.Verb == history.Hold || call.Verb == history.Release
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
// release.
func (r *record) notWhileHeld(f *findings) {
	held := make(map[string]history.Nanos)
	released := make(map[string][]history.Call)
	for _, call := range r.calls {
		switch {
		case call.Verb == history.Hold && call.Outcome == history.OK:
			held[call.JobID] = call.Returned
		case call.Verb == history.Release && call.Outcome != history.Refused:
			released[call.JobID] = append(released[call.JobID], call)
		}
	}
	r.claims(func(one *story, s *step) {
		since, ok := held[one.id]
		if !ok || s.holds.claimed < since+slack {
			return
		}
		f.look()
		asked := func(call history.Call) bool { return call.Started <= s.holds.claimed+slack }
		if !slices.ContainsFunc(released[one.id], asked) {
			f.add(one.id, []string{s.line}, "was claimed although it was held")
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

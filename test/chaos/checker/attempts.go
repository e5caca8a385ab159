package main

import (
	"slices"
	"time"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

// atLeastOnce is V8.
func atLeastOnce(r *record, f *findings) {
	type done struct{ effect, ended history.Nanos }
	did := make(map[attempt]done)
	began := make(map[attempt]bool)
	for _, e := range r.effects {
		at := attempt{e.JobID, e.Fence}
		began[at] = began[at] || e.Event == history.Began
		d := did[at]
		switch {
		case e.Event == history.Done:
			d.effect = e.At
		case e.Event == history.Ended && e.Report == history.Succeeds:
			d.ended = e.At
		}
		did[at] = d
	}
	r.ledger(func(line string, row history.Row) {
		if row["state"] != "succeeded" || !slices.Contains(r.run.Recorded, row["job_type"]) {
			return
		}
		f.look()
		fence, err1 := row.Int("fence")
		finished, err2 := row.Time("finished_at")
		d := did[attempt{row["job_id"], fence}]
		switch {
		case err1 != nil || err2 != nil:
			f.add(row["job_id"], []string{line}, "the row cannot be read: %v %v", err1, err2)
		case d.effect == 0:
			f.add(row["job_id"], []string{line}, "succeeded with the fence %d, but that attempt had no effect", fence)
		case d.ended == 0:
			f.add(row["job_id"], []string{line}, "succeeded with the fence %d, but that attempt did not report success", fence)
		case d.ended > finished+slack:
			f.add(row["job_id"], []string{line}, "succeeded with the fence %d before that attempt was done", fence)
		}
	})
	for _, e := range r.effects {
		if !began[attempt{e.JobID, e.Fence}] {
			f.add(e.JobID, []string{e.at}, "the attempt with the fence %d never began, but did something: %q", e.Fence, e.Event)
		}
	}
	r.ownPayload(f)
}

// ownPayload judges whether handlers got the payloads of the jobs that they were started for.
func (r *record) ownPayload(f *findings) {
	want := make(map[string]string)
	r.ledger(func(_ string, row history.Row) {
		mark := row.Mark()
		switch {
		case mark != "":
		case row["parent_id"] != "":
			mark = history.ChildMark(row["parent_id"])
		default:
			mark = history.TickMark
		}
		want[row["job_id"]] = mark
	})
	for _, e := range r.effects {
		f.look()
		if mark, ok := want[e.JobID]; ok && e.Mark != mark {
			f.add(e.JobID, []string{e.at}, "its handler got the payload of %q, and not of %q", e.Mark, mark)
		}
	}
}

// retryRules is V9.
func retryRules(r *record, f *findings) {
	reports, began := make(map[attempt]effect), make(map[attempt]effect)
	for _, e := range r.effects {
		switch e.Event {
		case history.Began:
			began[attempt{e.JobID, e.Fence}] = e
		case history.Ended:
			reports[attempt{e.JobID, e.Fence}] = e
		case history.Done:
		}
	}
	r.claims(func(one *story, s *step) {
		f.look()
		if due, err := s.after.Time("run_at"); err != nil || s.holds.claimed < due {
			f.add(one.id, []string{s.line}, "was claimed before it was due at %s", s.after["run_at"])
		}
	})
	for _, one := range r.jobs {
		for _, s := range one.steps {
			if s.after == nil {
				continue
			}
			attempts, _ := s.after.Int("attempt")
			limit, _ := s.after.Int("max_attempts")
			if attempts > limit {
				f.add(one.id, []string{s.line}, "has had %d attempts of %d", attempts, limit)
			}
			if s.unseen {
				continue
			}
			due, err := s.after.Time("run_at")
			if s.to == "queued" && (s.from == "retry" || s.from == "created") && s.before["run_at"] == s.after["run_at"] && (err != nil || s.committed < due) {
				f.add(one.id, []string{s.line}, "was queued before it was due at %s", s.after["run_at"])
			}
			if s.from == "dead" && s.to == "queued" && attempts != 0 {
				f.add(one.id, []string{s.line}, "was requeued, but has had %d attempts", attempts)
			}
			if s.from == "running" && s.to != "running" {
				r.counted(f, one, s)
				if r.run.Synchronous { // or else a fence may be given to two
					r.asReported(f, one, s, reports)
					withoutTrace(f, one, s, began)
				}
			}
		}
	}
	r.limits(f)
	r.delayed(f)
	r.notWhileHeld(f)
	r.inOrder(f)
}

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

// outcomes are what reports of handlers become: no report of a success becomes one of these.
var outcomes = map[history.Report]string{history.Fails: "failed", history.Permanent: "permanent", history.Snoozes: "snoozed", history.Succeeds: ""}

// asReported compares the outcome of an attempt with what its handler has reported. Another
// outcome, such as a crash, may have come in between.
func (r *record) asReported(f *findings, one *story, s *step, reports map[attempt]effect) {
	outcome := s.attempt["outcome"]
	if !slices.Contains([]string{"failed", "permanent", "snoozed"}, outcome) || !slices.Contains(r.run.Recorded, s.after["job_type"]) {
		return
	}
	fence, _ := s.attempt.Int("fence")
	e, reported := reports[attempt{one.id, fence}]
	want, known := outcomes[e.Report]
	switch {
	case !reported:
		f.add(one.id, []string{s.line}, "an attempt was %s, but its handler reported nothing", outcome)
	case known && outcome != want:
		f.add(one.id, []string{s.line, e.at}, "an attempt was %s, but its handler reported %q", outcome, e.Report)
	}
}

// withoutTrace judges jobs that are back in the queue without a record of an attempt: no
// handler may have started.
func withoutTrace(f *findings, one *story, s *step, began map[attempt]effect) {
	if s.attempt != nil || s.to != "queued" || s.held == nil {
		return
	}
	if e, ok := began[attempt{one.id, s.held.fence}]; ok {
		f.add(one.id, []string{s.line, e.at}, "went back to the queue, and its attempt was not recorded although its handler had begun")
	}
}

// uncharged are the outcomes that cost no attempt, and either those that may.
var (
	uncharged = []string{"suspected", "snoozed", "given_back"}
	either    = []string{"interrupted", "canceled"}
)

// counted judges what the end of an attempt has written.
func (r *record) counted(f *findings, one *story, s *step) {
	before, _ := s.before.Int("attempt")
	after, _ := s.after.Int("attempt")
	limit, _ := s.after.Int("max_attempts")
	outcome := s.attempt["outcome"]
	switch {
	case s.to == "succeeded":
		if after != before+1 {
			f.add(one.id, []string{s.line}, "succeeded, and its attempts went from %d to %d", before, after)
		}
		return
	case s.attempt == nil && s.to == "queued":
		return // withoutTrace judges it
	case s.attempt == nil:
		f.add(one.id, []string{s.line}, "became %s, but no attempt was recorded", s.to)
		return
	}
	charge := after - before
	free, open := slices.Contains(uncharged, outcome), slices.Contains(either, outcome)
	if charge != 0 && charge != 1 || !open && free != (charge == 0) {
		f.add(one.id, []string{s.line}, "an attempt was %s, and the attempts went from %d to %d", outcome, before, after)
	}
	if s.to == "dead" && after < limit && outcome != "permanent" && outcome != "crashed" {
		f.add(one.id, []string{s.line}, "died after %d attempts of %d, and the last was %s", after, limit, outcome)
	}
	if timeout := r.run.Timeouts[s.after["job_type"]]; outcome == "timeout" && timeout > 0 {
		over, err := s.attempt.Time("ended_at")
		if err != nil || s.held == nil || over+slack < s.held.original().claimed+history.Nanos(timeout) {
			f.add(one.id, []string{s.line}, "timed out at %s, sooner than %s after its claim", s.attempt["ended_at"], timeout)
		}
	}
	delay, bounded := r.run.Retries[s.after["job_type"]]
	if s.to == "retry" && outcome != "snoozed" && outcome != "given_back" && bounded {
		due, err1 := s.after.Time("run_at")
		over, err2 := s.attempt.Time("ended_at")
		if err1 != nil || err2 != nil || due < over+history.Nanos(delay) {
			f.add(one.id, []string{s.line}, "is tried again at %s, sooner than %s after %s", s.after["run_at"], delay, s.attempt["ended_at"])
		}
	}
}

// limits compares each job's limit of attempts with what was asked for.
func (r *record) limits(f *findings) {
	asked := make(map[string]int)
	for _, call := range r.calls {
		for _, submission := range call.Submissions {
			asked[submission.Mark] = submission.MaxAttempts
		}
	}
	r.ledger(func(line string, row history.Row) {
		limit, _ := row.Int("max_attempts")
		want := asked[row.Mark()]
		if want == 0 {
			want = r.run.MaxAttempts[row["job_type"]]
		}
		if want != 0 && limit != int64(want) {
			f.add(row["job_id"], []string{line}, "may have %d attempts, but %d were asked for", limit, want)
		}
	})
}

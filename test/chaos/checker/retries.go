package main

import (
	"slices"
	"strings"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

// retryRules is V9.
func retryRules(r *record, f *findings) {
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
			if s.from == "dead" && s.to == "queued" {
				afresh(f, one, s)
			}
			if s.from == "running" && s.to != "running" {
				r.counted(f, one, s)
				r.died(f, one, s)
				interrupted(f, one, s)
				lastError(f, one, s)
				r.timedOut(f, one, s)
				r.backedOff(f, one, s)
				if r.run.Synchronous { // or else a fence may be given to two
					r.asReported(f, one, s)
					r.crashed(f, one, s)
					r.withoutTrace(f, one, s)
				}
			}
		}
	}
	r.limits(f)
	r.delayed(f)
	r.notWhileHeld(f)
	r.inOrder(f)
	r.asOperated(f)
	r.noneTooOld(f)
}

// afresh judges a job that is requeued: it is as if it had never been tried.
func afresh(f *findings, one *story, s *step) {
	for _, counted := range []struct{ column, what string }{{"attempt", "attempts"}, {"crashes", "crashes"}, {"interruptions", "interruptions"}} {
		if n, _ := s.after.Int(counted.column); n != 0 {
			f.add(one.id, []string{s.line}, "was requeued, but has had %d %s", n, counted.what)
		}
	}
}

// outcomes are what reports of handlers become: no report of a success becomes one of these.
var outcomes = map[history.Report]string{history.Fails: "failed", history.Permanent: "permanent", history.Snoozes: "snoozed", history.Succeeds: ""}

// asReported compares the outcome of an attempt with what its handler has reported. Another
// outcome, such as a crash, may have come in between.
func (r *record) asReported(f *findings, one *story, s *step) {
	outcome := s.attempt["outcome"]
	if !slices.Contains([]string{"failed", "permanent", "snoozed"}, outcome) || !slices.Contains(r.run.Recorded, s.after["job_type"]) {
		return
	}
	fence, _ := s.attempt.Int("fence")
	e := r.handled[attempt{one.id, fence}].ended
	if e == nil {
		f.add(one.id, []string{s.line}, "an attempt was %s, but its handler reported nothing", outcome)
		return
	}
	if want, known := outcomes[e.Report]; known && outcome != want {
		f.add(one.id, []string{s.line, e.at}, "an attempt was %s, but its handler reported %q", outcome, e.Report)
	}
	if said := s.attempt["error"]; outcome != "snoozed" && !strings.Contains(said, e.Says) {
		f.add(one.id, []string{s.line, e.at}, "an attempt was %s with the error %q, but its handler returned that of %q", outcome, said, e.Says)
	}
}

// lastError judges the error of a job whose attempt has ended with one.
func lastError(f *findings, one *story, s *step) {
	said, last := s.attempt["error"], s.after["last_error"]
	if said != "" && (s.to == "retry" || s.to == "dead") && said != last {
		f.add(one.id, []string{s.line}, "its last error is %q, but that of its last attempt was %q", last, said)
	}
}

// crashed judges attempts whose process is said to have died: it was gone before that was written.
// Of a process that lived too short for the census, and of a handler that had not begun, nothing is
// known.
func (r *record) crashed(f *findings, one *story, s *step) {
	outcome := s.attempt["outcome"]
	fence, _ := s.attempt.Int("fence")
	e := r.handled[attempt{one.id, fence}].began
	if outcome != "crashed" && outcome != "suspected" || e == nil {
		return
	}
	i := r.processOf(*e)
	if i < 0 {
		return
	}
	f.look()
	over, err := s.attempt.Time("ended_at")
	if ended := r.processes[i].Ended; err != nil || ended == 0 || ended > over+history.Nanos(r.run.Bounds.Overlap)+r.stalled(over, ended) {
		f.add(one.id, []string{s.line, e.at, processLine(i)}, "an attempt was %s at %s, but its process lived on", outcome, s.attempt["ended_at"])
	}
}

// withoutTrace judges jobs that are back in the queue without a record of an attempt: no
// handler may have started.
func (r *record) withoutTrace(f *findings, one *story, s *step) {
	if s.attempt != nil || s.to != "queued" || s.held == nil {
		return
	}
	if e := r.handled[attempt{one.id, s.held.fence}].began; e != nil {
		f.add(one.id, []string{s.line, e.at}, "went back to the queue, and its attempt was not recorded although its handler had begun")
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

package main

import (
	"slices"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

// noneLost is V1.
func noneLost(r *record, f *findings) {
	there := make(map[string]history.Row)
	r.ledger(func(line string, row history.Row) {
		f.look()
		there[row["job_id"]] = row
		if state := r.last.state(row["job_id"]); !ended(row["state"]) {
			f.add(row["job_id"], []string{line}, "is %s in the ledger (%s by the witness) although everything has healed", row["state"], state)
		}
	})
	for job, row := range r.last.ledger {
		if there[job] == nil {
			f.add(job, nil, "is gone in the end, but the witness saw it %s last", row["state"])
		}
	}
	for i, call := range r.calls {
		if call.Outcome != history.OK {
			continue
		}
		for _, submission := range call.Submissions {
			f.look()
			row := there[submission.JobID]
			switch {
			case r.forgetful(call.Returned):
			case row == nil:
				f.add(submission.JobID, []string{callLine(i)}, "was acknowledged and is lost")
			case !submission.Duplicate && row.Mark() != submission.Mark:
				f.add(submission.JobID, []string{callLine(i)}, "was acknowledged as the job of %q, and is that of %q", submission.Mark, row.Mark())
			}
			if one := r.jobs[submission.JobID]; one != nil && one.born != nil && one.born.committed > call.Returned+slack {
				f.add(submission.JobID, []string{callLine(i), one.born.line}, "was acknowledged before it was there")
			}
		}
	}
	for _, one := range r.jobs {
		for _, s := range one.steps {
			if s.to == "" && s.from != "" {
				f.add(one.id, []string{s.line}, "was deleted while it was %s", s.from)
			}
		}
	}
	r.canceledForAReason(f)
	r.everyTick(f)
}

// canceledForAReason judges what was never done: somebody has canceled the job, or in its
// workflow a job has died or was canceled.
func (r *record) canceledForAReason(f *findings) {
	together := make(map[string][]string) // the marks of a workflow, by each of them
	reason := make(map[string]bool)       // jobs that clients have canceled
	for _, call := range r.calls {
		if call.Verb == history.Cancel && call.Outcome != history.Refused {
			reason[call.JobID] = true
		}
		if call.Verb == history.Workflow {
			marks := marksOf(call)
			for _, mark := range marks {
				together[mark] = marks
			}
		}
	}
	jobs, ttls := r.byMark(), r.expiries()
	spread := func(mark string) bool {
		one := jobs[mark]
		return one != nil && (reason[one.id] || slices.ContainsFunc(one.steps, func(s *step) bool { return s.to == "dead" }))
	}
	for _, one := range r.jobs {
		for _, s := range one.steps {
			if s.to != "canceled" || s.from == s.to || slices.Contains(r.run.Unsubmitted, s.after["job_type"]) {
				continue
			}
			f.look()
			if ttl := ttls[s.after.Mark()]; !reason[one.id] && !s.unseen && ttl > 0 && r.expired(s, ttl) {
				r.notOnceStarted(f, one, s)
				continue
			}
			if !reason[one.id] && !slices.ContainsFunc(together[s.after.Mark()], spread) {
				f.add(one.id, []string{s.line}, "was canceled although nobody asked for that")
			}
		}
	}
}

// byMark are the jobs that clients have submitted.
func (r *record) byMark() map[string]*story {
	jobs := make(map[string]*story)
	r.ledger(func(_ string, row history.Row) {
		if mark := row.Mark(); mark != "" {
			jobs[mark] = r.jobs[row["job_id"]]
		}
	})
	return jobs
}

func marksOf(call history.Call) []string {
	marks := make([]string, len(call.Submissions))
	for i, s := range call.Submissions {
		marks[i] = s.Mark
	}
	return marks
}

// attempted is a submission and its call.
type attempted struct {
	history.Submission
	call int
}

// noPhantom is V2.
func noPhantom(r *record, f *findings) {
	marks := make(map[string][]attempted)
	for i, call := range r.calls {
		for _, submission := range call.Submissions {
			marks[submission.Mark] = append(marks[submission.Mark], attempted{submission, i})
		}
	}
	made := make(map[string]int)
	r.ledger(func(line string, row history.Row) {
		f.look()
		id, mark := row["job_id"], row.Mark()
		if mark == "" {
			r.unsubmitted(f, line, row)
			return
		}
		made[mark]++
		asked := slices.DeleteFunc(slices.Clone(marks[mark]), func(a attempted) bool { return r.calls[a.call].Outcome == history.Refused })
		if len(asked) == 0 {
			f.add(id, []string{line}, "nobody submitted %q, or it was refused", mark)
			return
		}
		call := r.calls[asked[0].call]
		evidence := []string{line, callLine(asked[0].call)}
		if row["job_type"] != asked[0].JobType || row["tenant"] != call.Tenant || row["idempotency_key"] != asked[0].Key {
			f.add(id, evidence, "is not what was submitted: type %q, tenant %q, key %q", row["job_type"], row["tenant"], row["idempotency_key"])
		}
		if made[mark] > len(asked) {
			f.add(id, evidence, "is one of %d jobs of a submission that was sent %d times", made[mark], len(asked))
		}
		if one := r.jobs[id]; one != nil && one.born != nil && one.born.committed+slack < call.Started {
			f.add(id, append(evidence, one.born.line), "was there before it was submitted")
		}
	})
	r.wholeOrNot(f, made)
	r.followUps(f)
}

// wholeOrNot judges batches and workflows of which no client knows whether they were accepted:
// all of their jobs are made, or none.
func (r *record) wholeOrNot(f *findings, made map[string]int) {
	for i, call := range r.calls {
		if len(call.Submissions) < 2 || call.Outcome == history.OK || r.forgetful(call.Returned) {
			continue
		}
		f.look()
		there := 0
		for _, mark := range marksOf(call) {
			there += min(made[mark], 1)
		}
		if there > 0 && there < len(call.Submissions) {
			f.add("", []string{callLine(i)}, "of its %d jobs %d were made", len(call.Submissions), there)
		}
	}
}

// followUps judges what handlers have submitted: as many jobs as the attempt that succeeded
// says, each of that attempt. That none is there without a success, unsubmitted says.
func (r *record) followUps(f *findings) {
	children := make(map[string]int)
	parents := make(map[string]history.Row)
	r.ledger(func(_ string, row history.Row) { parents[row["job_id"]] = row })
	r.ledger(func(line string, row history.Row) {
		parent := row["parent_id"]
		children[parent]++
		if by := row.Fence(); by != "" && by != parents[parent]["fence"] {
			f.add(row["job_id"], []string{line}, "was submitted by the attempt with the fence %s, but its parent %s succeeded with %s", by, parent, parents[parent]["fence"])
		}
	})
	r.ledger(func(line string, row history.Row) {
		fence, _ := row.Int("fence")
		e := r.handled[attempt{row["job_id"], fence}].ended
		if e == nil || row["state"] != "succeeded" {
			return
		}
		f.look()
		if n := children[row["job_id"]]; n != e.FollowUps {
			f.add(row["job_id"], []string{line, e.at}, "has %d follow-ups, and its attempt submitted %d", n, e.FollowUps)
		}
	})
}

// unsubmitted judges a job that no client has submitted: a handler did, or a schedule. What a
// handler has submitted becomes real with its success, in one transaction.
func (r *record) unsubmitted(f *findings, line string, row history.Row) {
	id, parent := row["job_id"], row["parent_id"]
	if parent == "" {
		if !slices.Contains(r.run.Unsubmitted, row["job_type"]) {
			f.add(id, []string{line}, "nobody submitted it: it has no mark and no parent")
		}
		return
	}
	child, above := r.jobs[id], r.jobs[parent]
	if above == nil {
		f.add(id, []string{line}, "its parent %s was never seen", parent)
		return
	}
	if child == nil || child.born == nil {
		return // nobody looked
	}
	for _, s := range above.steps {
		together := s.generation == child.born.generation && s.lsn == child.born.lsn
		if s.to == "succeeded" && s.from != s.to && (s.unseen || together) {
			return
		}
	}
	f.add(id, []string{child.born.line}, "it was made without the success of its parent %s", parent)
}

// oneJobPerKey is V3.
func oneJobPerKey(r *record, f *findings) {
	type key struct{ tenant, key string }
	type known struct{ id, line string }
	first := make(map[key]known)
	see := func(k key, id, line string) {
		f.look()
		before, ok := first[k]
		switch {
		case !ok:
			first[k] = known{id, line}
		case before.id != id:
			f.add(id, []string{before.line, line}, "the key %q of tenant %q has another job: %s", k.key, k.tenant, before.id)
		}
	}
	// A workflow has one job for each of its marks, however often it was sent.
	member := make(map[string]bool)
	for _, call := range r.calls {
		for _, s := range call.Submissions {
			member[s.Mark] = member[s.Mark] || call.Verb == history.Workflow
		}
	}
	r.ledger(func(line string, row history.Row) {
		if name := row["idempotency_key"]; name != "" {
			see(key{row["tenant"], name}, row["job_id"], line)
		}
		if mark := row.Mark(); member[mark] {
			see(key{row["tenant"], history.MarkTag(mark)}, row["job_id"], line)
		}
	})
	for i, call := range r.calls {
		if call.Outcome != history.OK || r.forgetful(call.Returned) {
			continue
		}
		for _, s := range call.Submissions {
			if call.Verb == history.Workflow {
				see(key{call.Tenant, history.MarkTag(s.Mark)}, s.JobID, callLine(i))
			}
		}
		for _, s := range call.Submissions {
			if s.Key != "" && !s.Duplicate {
				see(key{call.Tenant, s.Key}, s.JobID, callLine(i))
			}
		}
		if call.Verb == history.Lookup && call.Found != "" {
			see(key{call.Tenant, call.Key}, call.Found, callLine(i))
		}
	}
}

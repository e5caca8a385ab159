package main

import (
	"slices"
	"time"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

var attemptControls = []control{
	{name: "a success had no effect", by: "V8", spoil: func(r *record, j jobs) {
		effectsOf(r, j.plain[0], func(e *history.Effect) bool { return e.Event != history.Done })
	}},
	{name: "a handler failed, and the job succeeded", by: "V8", spoil: func(r *record, j jobs) {
		effectsOf(r, j.plain[0], func(e *history.Effect) bool {
			if e.Event == history.Ended {
				e.Report = history.Fails
			}
			return true
		})
	}},
	{name: "only an earlier attempt had the effect", by: "V8 V6", spoil: func(r *record, j jobs) {
		effectsOf(r, j.retried, func(e *history.Effect) bool {
			if e.Fence == 2 && e.Event == history.Done {
				e.Fence = 1
			}
			return true
		})
	}},
	{name: "a job succeeded before its handler was done", by: "V8", spoil: func(r *record, j jobs) {
		effectsOf(r, j.plain[0], func(e *history.Effect) bool {
			if e.Event == history.Ended {
				e.At += tick * 3
			}
			return true
		})
	}},
	{name: "a handler did not begin, but had its effect", by: "V8", spoil: func(r *record, j jobs) {
		effectsOf(r, j.plain[0], func(e *history.Effect) bool { return e.Event != history.Began })
	}},
	{name: "a handler gets the payload of another job", by: "V8", spoil: func(r *record, j jobs) {
		effectsOf(r, j.plain[0], func(e *history.Effect) bool { e.Mark = "mark-" + j.plain[1]; return true })
	}},
	{name: "the handler of a follow-up gets no payload", by: "V8", spoil: func(r *record, j jobs) {
		effectsOf(r, j.child, func(e *history.Effect) bool { e.Mark = ""; return true })
	}},
	{name: "an attempt is not counted", by: "V9", more: func(m *maker, _ jobs) {
		job := m.submit("GOOD", "", history.OK)
		m.claim(job)
		m.handler(job, history.Fails, history.Began, history.Ended)
		m.end(job, "retry", "failed", 0)
		m.wait(10)
		m.promote(job)
		m.success(job)
	}},
	{name: "a job has one attempt too many", by: "V9", more: func(m *maker, _ jobs) {
		job := m.submit("BAD", "", history.OK)
		for range 3 {
			m.fail(job, "retry", "failed")
			m.wait(10)
			m.promote(job)
		}
		m.fail(job, "dead", "failed")
	}},
	{name: "a retry is claimed before its time", by: "V9", more: func(m *maker, _ jobs) {
		job := m.submit("GOOD", "", history.OK)
		m.fail(job, "retry", "failed")
		m.promote(job)
		m.success(job)
	}},
	{name: "a retry is due too soon", by: "V9", spoil: func(r *record, j jobs) {
		at := change(r, history.Insert, "unsuccessful_attempts", j.retried, 0)
		r.witness[at].Row["ended_at"] = r.witness[ending(r, j.retried, "retry")].Row["run_at"]
	}},
	{name: "a job dies with attempts left", by: "V9", more: func(m *maker, _ jobs) {
		m.fail(m.submit("BAD", "", history.OK), "dead", "failed")
	}},
	{name: "a failure is recorded as a crash", by: "V9", more: func(m *maker, _ jobs) {
		job := m.submit("GOOD", "", history.OK)
		m.fail(job, "retry", "crashed")
		for i := range 2 {
			m.effects[len(m.effects)-1-i].PID = outliving
		}
		m.again(job)
	}, spoil: func(r *record, _ jobs) {
		r.processes = append(r.processes, history.Process{Kind: history.Plugin, Name: "good", PID: outliving, PIDStarted: 7, Ended: r.run.Ended})
	}},
	{name: "a job dies of one crash", by: "V9", more: func(m *maker, _ jobs) {
		m.fail(m.submit("GOOD", "", history.OK), "dead", "crashed")
	}},
	{name: "a crash is not counted", by: "V9", more: func(m *maker, _ jobs) {
		job := m.submit("GOOD", "", history.OK)
		m.fail(job, "retry", "crashed")
		m.witness[ending(&m.record, job, "retry")].Row["crashes"] = "0"
		m.again(job)
	}},
	{name: "a second retry waits only as long as the first", by: "V9", spoil: func(r *record, _ jobs) {
		r.run.Retries["BAD"] = history.Backoff{First: delay, Factor: 2, Most: time.Minute, Spread: 1}
	}},
	{name: "a snooze ends at once", by: "V9", more: func(m *maker, _ jobs) {
		job := m.submit("GOOD", "", history.OK)
		m.fail(job, "retry", "snoozed")
		m.effects[len(m.effects)-1].Delay = time.Minute
		m.again(job)
	}},
	{name: "a failed attempt leaves no record", by: "V9", spoil: func(r *record, j jobs) {
		without(&r.witness, change(r, history.Insert, "unsuccessful_attempts", j.retried, 0))
	}},
	{name: "an attempt is given back without a record", by: "V9", more: func(m *maker, _ jobs) {
		job := m.submit("GOOD", "", history.OK)
		m.claim(job)
		m.handler(job, "", history.Began)
		m.end(job, "queued", "given_back", 0)
		m.success(job)
		without(&m.witness, change(&m.record, history.Insert, "unsuccessful_attempts", job, 0))
		delete(m.tables["unsuccessful_attempts"], job+" 1")
	}},
	{name: "a retry after a timeout is due at once", by: "V9", more: func(m *maker, _ jobs) {
		job := m.submit("GOOD", "", history.OK)
		m.claim(job)
		m.handler(job, "", history.Began)
		m.wait(400)
		m.end(job, "retry", "timeout", 1)
		due := m.witness[len(m.witness)-1].Row["ended_at"]
		m.witness[ending(&m.record, job, "retry")].Row["run_at"] = due
		m.tables["jobs"][job]["run_at"] = due
		m.promote(job)
		m.success(job)
	}},
	{name: "an attempt times out before its time", by: "V9", more: func(m *maker, _ jobs) {
		job := m.submit("GOOD", "", history.OK)
		for range 2 {
			m.fail(job, "retry", "timeout")
			m.wait(10)
			m.promote(job)
		}
		m.fail(job, "dead", "timeout")
	}},
	{name: "a job dies, and no handler was ever started for it", by: "V9", spoil: func(r *record, j jobs) {
		effectsOf(r, j.dead, func(*history.Effect) bool { return false })
	}},
	{name: "a job starts while it is held", by: "V9", more: func(m *maker, _ jobs) {
		job := m.submit("GOOD", "", history.OK)
		m.call(history.Call{Verb: history.Hold, JobID: job, Code: 200, Status: "PENDING"})
		m.success(job)
	}},
	{name: "a job starts while it is held for the second time", by: "V9", more: func(m *maker, _ jobs) {
		job := m.submit("GOOD", "", history.OK)
		for _, verb := range []history.Verb{history.Hold, history.Release, history.Hold} {
			m.call(history.Call{Verb: verb, JobID: job, Code: 200, Status: "PENDING"})
		}
		m.success(job)
	}},
	{name: "a job with a delay begins at once because a release was refused", by: "V9", more: func(m *maker, _ jobs) {
		job := m.submit("GOOD", "", history.OK)
		m.calls[len(m.calls)-1].Submissions[0].Delay = time.Minute
		m.call(history.Call{Verb: history.Release, JobID: job, Outcome: history.Refused, Code: 409})
		m.success(job)
	}},
	{name: "a job with a delay begins at once", by: "V9", more: func(m *maker, _ jobs) {
		job := m.submit("GOOD", "", history.OK)
		m.calls[len(m.calls)-1].Submissions[0].Delay = time.Minute
		m.success(job)
	}},
	{name: "a job dies for good although its handler would try again", by: "V9", more: func(m *maker, _ jobs) {
		m.fail(m.submit("GOOD", "", history.OK), "dead", "permanent")
		m.effects[len(m.effects)-1].Report = history.Fails
	}},
	{name: "a job fails although its handler has succeeded", by: "V9", more: func(m *maker, _ jobs) {
		job := m.submit("GOOD", "", history.OK)
		m.fail(job, "retry", "failed")
		m.effects[len(m.effects)-1].Report = history.Succeeds
		m.wait(10)
		m.promote(job)
		m.success(job)
	}},
	{name: "a job of a workflow starts before the one that it comes after has ended", by: "V9", more: func(m *maker, _ jobs) {
		first, second := m.workflow(history.OK)
		m.success(second)
		m.success(first)
	}},
	{name: "a job of a workflow starts although the one before it is dead", by: "V9", more: func(m *maker, _ jobs) {
		first, second := m.workflow(history.OK)
		m.fail(first, "dead", "permanent")
		m.success(second)
	}},
	{name: "a job may have more attempts than were asked for", by: "V9", spoil: func(r *record, j jobs) {
		callOf(r, history.Submit, j.plain[0]).Submissions[0].MaxAttempts = 1
	}},
}

var answerControls = []control{
	{name: "a completed job is pending again", by: "V10", more: func(m *maker, j jobs) { m.get(j.child, "PENDING") }},
	{name: "a canceled job runs", by: "V10", spoil: func(r *record, j jobs) {
		for i := range r.calls {
			if c := &r.calls[i]; c.Verb == history.Get && c.JobID == j.canceled {
				c.Status = "RUNNING"
			}
		}
	}},
	{name: "a cancel is acknowledged, and the job is tried again", by: "V10", more: func(m *maker, _ jobs) {
		job := m.submit("GOOD", "", history.OK)
		m.claim(job)
		m.handler(job, "", history.Began)
		m.call(history.Call{Verb: history.Cancel, JobID: job, Code: 200, Status: "RUNNING"})
		m.handler(job, history.Fails, history.Ended)
		m.end(job, "retry", "failed", 1)
		m.wait(10)
		m.promote(job)
		m.success(job)
	}},
	{name: "a cancel is refused although the job waits", by: "V1 V10", spoil: func(r *record, j jobs) {
		c := callOf(r, history.Cancel, j.canceled)
		c.Outcome, c.Code = history.Refused, 409
	}},
	{name: "a requeue of a job that is not dead is acknowledged", by: "V10", more: func(m *maker, j jobs) {
		m.call(history.Call{Verb: history.Requeue, JobID: j.child, Code: 200, Status: "PENDING"})
	}},
	{name: "a job that has succeeded is read as failed", by: "V10", spoil: func(r *record, j jobs) {
		callOf(r, history.Get, j.plain[0]).Status = "FAILED"
	}},
	{name: "a job is read as it was long ago", by: "V10", spoil: func(r *record, j jobs) {
		callOf(r, history.Get, j.plain[0]).Status = "PENDING"
	}},
	{name: "a requeue is acknowledged, and nothing happens", by: "V10", more: func(m *maker, j jobs) {
		m.call(history.Call{Verb: history.Requeue, JobID: j.dead, Code: 200, Status: "PENDING"})
	}},
	{name: "two requeues are acknowledged, and the job comes back once", by: "V10", spoil: func(r *record, j jobs) {
		r.calls = append(r.calls, *callOf(r, history.Requeue, j.dead))
	}},
	{name: "a redrive is acknowledged, and nothing happens", by: "V10", more: func(m *maker, _ jobs) {
		m.call(history.Call{Verb: history.Redrive, Count: 1, Code: 200})
	}},
	{name: "fewer jobs come back than a redrive says", by: "V10", more: func(m *maker, _ jobs) { m.redrive(3) }},
	{name: "a key that has a job is not found", by: "V10", more: func(m *maker, _ jobs) {
		m.call(history.Call{Verb: history.Lookup, Tenant: "acme", Key: "claimed", Code: 200})
	}},
}

var systemControls = []control{
	{name: "there were too few jobs", by: "enough", spoil: func(r *record, _ jobs) { r.run.Minimums.Jobs = 1000 }},
	{name: "too few faults were injected", by: "enough", spoil: func(r *record, _ jobs) { r.run.Minimums.Faults = 100 }},
	{name: "no attempt was stale", by: "enough", spoil: func(r *record, j jobs) {
		effectsOf(r, j.stale, func(e *history.Effect) bool { return e.Fence > 1 || e.Event != history.Ended })
	}},
	{name: "nothing was read", by: "enough", spoil: func(r *record, _ jobs) {
		r.calls = slices.DeleteFunc(r.calls, func(c history.Call) bool { return c.Verb == history.Get })
	}},
	{name: "every call was answered", by: "enough", spoil: func(r *record, _ jobs) {
		for i := range r.calls {
			if r.calls[i].Outcome == history.Unknown {
				r.calls[i].Outcome, r.calls[i].Submissions[0].JobID = history.OK, r.calls[i+1].Found
			}
		}
	}},
	{name: "an orchestrator ends by itself", by: "V11", spoil: func(r *record, _ jobs) {
		r.processes[0].Wanted, r.processes[0].Ended = false, r.run.Started
	}},
	{name: "a process is left", by: "V12", spoil: func(r *record, _ jobs) { r.processes[1].Ended = 0 }},
	{name: "an orphan is left", by: "V12", spoil: func(r *record, _ jobs) { r.leaks.Orphans = []string{"good (17)"} }},
	{name: "files stay open", by: "V12", spoil: func(r *record, _ jobs) { r.leaks.Healed[0].Files = 100 }},
	{name: "goroutines stay", by: "V12", spoil: func(r *record, _ jobs) { r.leaks.Healed[0].Goroutines = 200 }},
	{name: "a session stays open that no orchestrator has", by: "V12", spoil: func(r *record, _ jobs) { r.leaks.Healed[1].Connections++ }},
	{name: "nobody counted sessions", by: "V12", spoil: func(r *record, _ jobs) { r.leaks.Healed[1].Connections = 0 }},
	{name: "nobody looked for leaks", by: "V12", spoil: func(r *record, _ jobs) { r.leaks.Healed = nil }},
	{name: "nobody knows what one process uses in the end", by: "V12", spoil: func(r *record, _ jobs) {
		r.leaks.Baseline = append(r.leaks.Baseline, history.Usage{Name: "another"})
	}},
	{name: "no process was recorded", by: "enough", spoil: func(r *record, _ jobs) { r.processes = nil }},
	{name: "processes of one orchestrator only were recorded", by: "enough", spoil: func(r *record, _ jobs) { r.run.Minimums.Orchestrators = 2 }},
	{name: "one server only was recorded", by: "enough", spoil: func(r *record, _ jobs) { without(&r.processes, 3) }},
	{name: "no process of a plugin was recorded", by: "enough", spoil: func(r *record, _ jobs) { without(&r.processes, 1) }},
	{name: "doctor finds something", by: "V12", spoil: func(r *record, _ jobs) { r.leaks.DoctorExit = 1 }},
	{name: "a reclaim takes too long", by: "V13", spoil: func(r *record, _ jobs) {
		r.timings.Reclaims[0].Reclaimed += history.Nanos(10 * time.Second)
	}},
	{name: "nothing is accepted for long after a failover", by: "V13", spoil: func(r *record, _ jobs) {
		r.timings.Failovers[0].FirstAccept += history.Nanos(10 * time.Second)
	}},
	{name: "nothing is claimed after a failover", by: "V13", spoil: func(r *record, _ jobs) { r.timings.Failovers[0].FirstClaim = 0 }},
	{name: "the first claim after a failover is late, and only submissions were disturbed", by: "V13", spoil: func(r *record, _ jobs) {
		r.timings.Failovers[0].FirstClaim += history.Nanos(10 * time.Second)
		r.timings.Failovers[0].AcceptDisturbed = []string{"kill-api"}
	}},
	{name: "nothing is accepted after a failover, and only claims were disturbed", by: "V13", spoil: func(r *record, _ jobs) {
		r.timings.Failovers[0].FirstAccept = 0
		r.timings.Failovers[0].ClaimDisturbed = []string{"pause-all"}
	}},
	{name: "the backlog never drains", by: "V13", spoil: func(r *record, _ jobs) { r.timings.Drained = -1 }},
	{name: "the backlog drains for too long", by: "V13", spoil: func(r *record, _ jobs) {
		r.run.Bounds.Drained, r.timings.Drained = time.Second, time.Minute
	}},
	{name: "faults are all of one kind", by: "enough", spoil: func(r *record, _ jobs) {
		for i := range r.faults {
			r.faults[i].Kind = "one"
		}
		r.faults = slices.Clip(r.faults)
	}},
}

package main

import (
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

// ask lets an operator ask for something that holds for a while, and waits until it is in force.
func (m *maker) ask(kind, target string, parameters map[string]string) {
	m.wait(15)
	m.asked(kind, target, parameters)
	m.wait(10)
}

func (m *maker) asked(kind, target string, parameters map[string]string) {
	m.faults = append(m.faults, history.Fault{
		Kind: kind, Target: target, Parameters: parameters, Injected: m.now, Standing: m.now, Healing: m.now + 100*tick, Healed: m.now + 100*tick,
	})
}

// renew renews the lease of a job.
func (m *maker) renew(job string) {
	lease := maps.Clone(m.tables["leases"][job])
	lease["expires_at"] = text(m.now + tick + history.Nanos(leaseFor))
	m.commit(m.write("leases", job, lease))
}

// atOnce runs so many jobs at the same time.
func (m *maker) atOnce(n int) {
	var all []string
	for range n {
		all = append(all, m.submit("GOOD", "", history.OK))
	}
	for _, job := range all {
		m.claim(job)
		m.handler(job, "", history.Began)
	}
	for _, job := range all {
		m.handler(job, history.Succeeds, history.Done, history.Ended)
		m.end(job, "succeeded", "", 1)
	}
}

// ticks makes the jobs of a schedule that ticks each second, but for one tick. All are canceled.
func (m *maker) ticks(n, missing int) {
	m.ask("schedule", "often", map[string]string{history.Every: "1s"})
	for i := range n {
		if i == missing {
			continue
		}
		job := m.id("job")
		m.born(job, "TICK", fmt.Sprintf("schedule/often/2026-11-27T04:00:%02dZ", i), "")
		m.commit(m.write("ready", job, nil), m.ledger(job, "state", "canceled", "finished_at", text(m.now)))
	}
}

// disobey lets a handler go on for a while when its job is canceled, and succeed.
func (m *maker) disobey(jobType string, ticks int) {
	m.wait(15)
	job := m.submit(jobType, "", history.OK)
	m.claim(job)
	m.handler(job, "", history.Began)
	m.wait(1)
	m.call(history.Call{Verb: history.Cancel, JobID: job, Code: 200, Status: "RUNNING"})
	for range ticks {
		m.wait(1)
		m.renew(job)
	}
	m.handler(job, history.Succeeds, history.Done, history.Ended)
	m.end(job, "succeeded", "", 1)
}

func withTicks(r *record, _ jobs) { r.run.Unsubmitted = []string{"TICK"} }

// expiring submits a job that expires after so many ticks.
func (m *maker) expiring(ticks int) string {
	job := m.submit("GOOD", "", history.OK)
	m.calls[len(m.calls)-1].Submissions[0].TTL = time.Duration(history.Nanos(ticks) * tick)
	return job
}

// expire cancels a job that waits.
func (m *maker) expire(job string) {
	m.commit(m.write("ready", job, nil), m.ledger(job, "state", "canceled", "finished_at", text(m.now)))
}

// report writes the progress of a job, as the attempt with the fence does.
func (m *maker) report(job string, fence int) {
	m.commit(m.ledger(job, "progress", strconv.Itoa(fence)))
}

// saying lets the first attempt at the job that ended with the report name itself.
func saying(r *record, job string, report history.Report) string {
	says := history.Says(job, 1)
	effectsOf(r, job, func(e *history.Effect) bool {
		if e.Event == history.Ended && e.Report == report && e.Fence == 1 {
			e.Says = says
		}
		return true
	})
	return says
}

// failing is the row of the job's first failed attempt, and that of the job afterwards.
func failing(r *record, job string) (attempt, after history.Row) {
	return r.witness[change(r, history.Insert, "unsuccessful_attempts", job, 0)].Row, r.witness[ending(r, job, "retry")].Row
}

var operatorControls = []control{
	{name: "a job of a paused type starts", by: "V9", more: func(m *maker, _ jobs) {
		m.ask("pause-type", "GOOD", nil)
		m.success(m.submit("GOOD", "", history.OK))
	}},
	{name: "a job starts while everything is paused", by: "V9", more: func(m *maker, _ jobs) {
		m.ask("pause-all", "all", nil)
		m.success(m.submit("GOOD", "", history.OK))
	}},
	{name: "one job more runs than a type may have", by: "V9", more: func(m *maker, _ jobs) {
		m.ask("limit-type", "type GOOD", map[string]string{history.Concurrency: "2"})
		m.atOnce(3)
	}},
	{name: "one job more runs than a tenant may have", by: "V9", more: func(m *maker, _ jobs) {
		m.ask("limit-tenant", "tenant acme", map[string]string{history.Concurrency: "1"})
		m.atOnce(2)
	}},
	{name: "a handler goes on although its job is canceled", by: "V10", more: func(m *maker, _ jobs) { m.disobey("GOOD", 10) }},
	{name: "a schedule makes no job for a tick", by: "V1", more: func(m *maker, _ jobs) { m.ticks(5, 2) }, spoil: withTicks},
	{name: "a job expires too soon", by: "V1", more: func(m *maker, _ jobs) { m.expire(m.expiring(20)) }},
	{name: "a job expires that has started", by: "V1", more: func(m *maker, _ jobs) {
		job := m.expiring(10)
		m.fail(job, "queued", "given_back")
		m.wait(10)
		m.expire(job)
	}},
	{name: "a job starts that has expired", by: "V9", more: func(m *maker, _ jobs) {
		job := m.expiring(5)
		m.wait(10)
		m.success(job)
	}},
	{name: "a job loses its owner, and nobody counts that", by: "V9", more: func(m *maker, _ jobs) {
		job := m.submit("GOOD", "", history.OK)
		m.claim(job)
		m.end(job, "queued", "interrupted", 0)
		m.witness[change(&m.record, history.Update, "jobs", job, 0)].Row["interruptions"] = "0"
		m.success(job)
	}},
	{name: "a job is charged for the loss of its owner", by: "V9", more: func(m *maker, _ jobs) {
		job := m.submit("GOOD", "", history.OK)
		m.claim(job)
		m.end(job, "queued", "interrupted", 1)
		m.success(job)
	}},
	{name: "a job that is requeued stays a suspect", by: "V9", more: func(m *maker, _ jobs) {
		job := m.submit("GOOD", "", history.OK)
		m.fail(job, "dead", "permanent")
		m.back(job)
		m.witness[change(&m.record, history.Update, "jobs", job, 1)].Row["crashes"] = "1"
		m.call(history.Call{Verb: history.Requeue, JobID: job, Code: 200, Status: "PENDING"})
		m.success(job)
	}},
	{name: "a retry is due too late", by: "V9", spoil: func(r *record, j jobs) {
		r.witness[ending(r, j.retried, "retry")].Row["run_at"] = "2035-01-01 00:00:00+00"
	}},
	{name: "a job keeps the error of an earlier attempt", by: "V9", spoil: func(r *record, j jobs) {
		attempt, after := failing(r, j.retried)
		attempt["error"], after["last_error"] = "this one", "the one before"
	}},
	{name: "an attempt has the error of another", by: "V9", spoil: func(r *record, j jobs) {
		saying(r, j.retried, history.Fails)
		attempt, after := failing(r, j.retried)
		attempt["error"], after["last_error"] = "another", "another"
	}},
	{name: "a job has the result of another", by: "V8", spoil: func(r *record, j jobs) {
		saying(r, j.plain[0], history.Succeeds)
		r.final[finalOf(r, "jobs", j.plain[0])].Row["result"] = `"` + history.Says(j.plain[1], 1) + `"`
	}},
	{name: "an attempt writes its progress under the lease of the next", by: "V7", more: func(m *maker, _ jobs) {
		job := m.submit("GOOD", "", history.OK)
		m.fail(job, "queued", "given_back")
		m.claim(job)
		m.report(job, 1)
		m.handler(job, history.Succeeds, history.Began, history.Done, history.Ended)
		m.end(job, "succeeded", "", 1)
	}},
	{name: "an attempt writes its progress when it has ended", by: "V7", more: func(m *maker, _ jobs) {
		job := m.submit("GOOD", "", history.OK)
		m.fail(job, "queued", "given_back")
		m.report(job, 1)
		m.success(job)
	}},
	{name: "an attempt writes its progress when a reaper has its lease", by: "V7", more: func(m *maker, _ jobs) {
		job := m.submit("GOOD", "", history.OK)
		m.claim(job)
		m.reap(job)
		m.report(job, 1)
		m.end(job, "queued", "interrupted", 0)
		m.success(job)
	}},
}

// operatorsMay are what operators and handlers may do.
var operatorsMay = []control{
	{name: "a job starts soon after a pause began", more: func(m *maker, _ jobs) {
		m.ask("pause-type", "GOOD", nil)
		m.now -= 9 * tick
		m.success(m.submit("GOOD", "", history.OK))
	}},
	{name: "a job of another type starts", more: func(m *maker, _ jobs) {
		m.ask("pause-type", "BAD", nil)
		m.success(m.submit("GOOD", "", history.OK))
	}},
	{name: "a job starts while its type is paused, but nobody knows for sure", more: func(m *maker, _ jobs) {
		m.ask("pause-type", "GOOD", nil)
		m.faults = append(m.faults, history.Fault{Kind: "mute-network", Target: "a", Injected: m.now, Healed: m.now + tick})
		m.success(m.submit("GOOD", "", history.OK))
	}},
	{name: "a job runs that started before there was a limit", more: func(m *maker, _ jobs) {
		m.wait(15)
		job := m.submit("GOOD", "", history.OK)
		m.claim(job)
		m.handler(job, "", history.Began)
		m.asked("limit-type", "type GOOD", map[string]string{history.Concurrency: "1"})
		for range 10 {
			m.renew(job)
		}
		m.success(m.submit("GOOD", "", history.OK))
		m.handler(job, history.Succeeds, history.Done, history.Ended)
		m.end(job, "succeeded", "", 1)
	}},
	{name: "as many jobs run as may", more: func(m *maker, _ jobs) {
		m.ask("limit-type", "type GOOD", map[string]string{history.Concurrency: "3"})
		m.atOnce(3)
		m.atOnce(3)
	}},
	{name: "a handler goes on for a moment although its job is canceled", more: func(m *maker, _ jobs) { m.disobey("GOOD", 1) }},
	{name: "a handler goes on that never stops", more: func(m *maker, _ jobs) { m.disobey("BAD", 10) }},
	{name: "a schedule makes all its jobs", more: func(m *maker, _ jobs) { m.ticks(5, -1) }, spoil: withTicks},
	{name: "a schedule that may have been set twice makes no job for a tick", more: func(m *maker, _ jobs) {
		m.ticks(5, 2)
		maps.Copy(m.faults[len(m.faults)-1].Parameters, map[string]string{history.Unanswered: "503"})
	}, spoil: withTicks},
	{name: "a job expires that is claimed, but not started", more: func(m *maker, _ jobs) {
		job := m.expiring(5)
		m.wait(5)
		m.get(job, "PENDING")
		m.expire(job)
		m.get(job, "CANCELED")
		job = m.expiring(5)
		m.claim(job)
		m.wait(5)
		m.end(job, "canceled", "canceled", 1)
	}},
	{name: "a job that has started does not expire", more: func(m *maker, _ jobs) {
		job := m.expiring(5)
		m.fail(job, "retry", "failed")
		m.again(job)
	}},
	{name: "a job loses its sixth owner, and is charged", more: func(m *maker, _ jobs) {
		job := m.submit("GOOD", "", history.OK)
		for n := range forgiven + 1 {
			m.claim(job)
			m.end(job, "queued", "interrupted", n/forgiven)
		}
		m.success(job)
	}},
	{name: "each attempt says what it was", spoil: func(r *record, j jobs) {
		attempt, after := failing(r, j.retried)
		attempt["error"] = saying(r, j.retried, history.Fails) + " was to fail"
		after["last_error"] = attempt["error"]
		r.final[finalOf(r, "jobs", j.plain[0])].Row["result"] = `"` + saying(r, j.plain[0], history.Succeeds) + `"`
	}},
	{name: "a retry waits as long as chance allows", spoil: func(r *record, _ jobs) {
		r.run.Retries["GOOD"] = history.Backoff{First: delay / 2, Factor: 1, Most: time.Minute, Spread: 2}
	}},
	{name: "each attempt writes its own progress", more: func(m *maker, _ jobs) {
		job := m.submit("GOOD", "", history.OK)
		for fence := 1; fence <= 2; fence++ {
			m.claim(job)
			m.report(job, fence)
			m.end(job, "queued", "interrupted", 0)
		}
		m.success(job)
	}},
}

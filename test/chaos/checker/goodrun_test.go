package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

// plain is how many jobs of a good run just succeed.
const plain = 20

// jobs are those of a good run to which something happened.
type jobs struct {
	plain    []string
	retried  string // failed, and succeeded
	dead     string // failed three times, and was requeued: it is dead again, for good
	canceled string // waited
	stopped  string // ran, and was canceled
	stale    string // its first worker was paused, and reported after the reaper had it
	unsure   string // nobody was told that it was accepted
	parent   string
	child    string
	claimed  string // an old primary saw a claim of it that the new one does not know
	kept     string // its lease was kept for longer than a lease
	expired  string // its lease was kept, and taken over because its worker was silent
	across   string // its lease was kept during the failover
}

// good makes a good run. What more is to happen before its end, if anything, comes in more.
func good(more ...func(*maker, jobs)) (*record, jobs) {
	m := &maker{now: 1_795_000_000_000_000_000, lsn: 0x1000, tables: make(map[string]map[string]history.Row), numbers: make(map[string]int), told: make(map[string]int)}
	began := m.now
	var j jobs
	for i := range plain {
		job := m.submit("GOOD", fmt.Sprintf("key-%d", i), history.OK)
		m.success(job)
		j.plain = append(j.plain, job)
		m.get(job, "COMPLETED")
	}

	j.retried = m.submit("GOOD", "retried", history.OK)
	m.fail(j.retried, "retry", "failed")
	m.wait(10)
	m.promote(j.retried)
	m.get(j.retried, "PENDING")
	m.success(j.retried)

	j.dead = m.submit("BAD", "", history.OK)
	for range 2 {
		m.fail(j.dead, "retry", "failed")
		m.wait(10)
		m.promote(j.dead)
	}
	m.fail(j.dead, "dead", "failed")
	m.get(j.dead, "FAILED")
	m.back(j.dead)
	m.call(history.Call{Verb: history.Requeue, JobID: j.dead, Code: 200, Status: "PENDING"})
	m.fail(j.dead, "dead", "permanent")

	j.canceled = m.submit("GOOD", "canceled", history.OK)
	m.commit(m.write("ready", j.canceled, nil), m.ledger(j.canceled, "state", "canceled", "finished_at", text(m.now)))
	m.call(history.Call{Verb: history.Cancel, JobID: j.canceled, Code: 200, Status: "CANCELED"})
	m.get(j.canceled, "CANCELED")

	j.stopped = m.submit("GOOD", "", history.OK)
	m.claim(j.stopped)
	m.handler(j.stopped, "", history.Began)
	m.call(history.Call{Verb: history.Cancel, JobID: j.stopped, Code: 200, Status: "RUNNING"})
	m.handler(j.stopped, history.Cancels, history.Ended)
	m.end(j.stopped, "canceled", "canceled", 1)

	j.stale = m.submit("GOOD", "stale", history.OK)
	m.claim(j.stale)
	m.handler(j.stale, "", history.Began)
	m.faults = append(m.faults, history.Fault{Kind: "stop-worker", Target: "w", Injected: m.now, Healed: m.now + 15*tick, Pause: true})
	paused := m.reap(j.stale)
	m.end(j.stale, "retry", "lease_expired", 1)
	m.handlerOf(j.stale, paused, history.Succeeds, history.Done, history.Ended)
	m.wait(10)
	m.promote(j.stale)
	m.success(j.stale)

	j.unsure = m.submit("GOOD", "unsure", history.Unknown)
	m.call(history.Call{Verb: history.Lookup, Tenant: "acme", Key: "unsure", Found: j.unsure, Code: 200})

	j.parent = m.submit("GOOD", "", history.OK)
	m.success(j.parent)
	j.child = m.followUp(j.parent)

	m.keep(&j)
	j.claimed = m.submit("GOOD", "claimed", history.OK)
	j.across = m.held()
	m.failOver(j.claimed)
	m.beat()
	m.done(j.across)
	for _, job := range []string{j.unsure, j.child, j.claimed} {
		m.success(job)
		m.get(job, "COMPLETED")
	}

	for _, happens := range more {
		happens(m, j)
	}
	m.finish(began)
	return &m.record, j
}

// followUp adds a job to the transaction in which its parent has just succeeded.
func (m *maker) followUp(parent string) string {
	child := m.id("job")
	m.effects[len(m.effects)-1].FollowUps++
	m.now -= tick
	m.lsn -= 0x100
	m.commit(m.ledger(child, "tenant", "acme", "job_type", "GOOD", "parent_id", parent, "max_attempts", "3", "attempt", "0", "fence", "0",
		"tags", "{"+history.FenceTag(1)+"}", "interruptions", "0", "state", "queued", "run_at", text(m.now)), m.listed("ready", child))
	return child
}

// workflow makes two jobs, of which the second comes after the first.
func (m *maker) workflow(how history.Outcome) (first, second string) {
	first, second = m.id("job"), m.id("job")
	c := history.Call{Verb: history.Workflow, Tenant: "acme", Key: "workflow", Outcome: how, Submissions: []history.Submission{
		{Mark: "first", JobType: "GOOD"}, {Mark: "second", JobType: "GOOD", After: []string{"first"}},
	}}
	m.born(first, "GOOD", "", "first")
	m.now -= tick
	m.lsn -= 0x100
	m.born(second, "GOOD", "", "second")
	if how == history.OK {
		c.Submissions[0].JobID, c.Submissions[1].JobID, c.Code = first, second, 202
	}
	m.call(c)
	return first, second
}

// batch makes two jobs at once, and runs them. Its call is the last.
func (m *maker) batch() {
	first, second := m.id("job"), m.id("job")
	m.born(first, "GOOD", "", "mark-"+first)
	m.now -= tick
	m.lsn -= 0x100
	m.born(second, "GOOD", "", "mark-"+second)
	m.call(history.Call{Verb: history.Batch, Tenant: "acme", Code: 202, Submissions: []history.Submission{
		{Mark: "mark-" + first, JobType: "GOOD", JobID: first, Status: "PENDING"}, {Mark: "mark-" + second, JobType: "GOOD", JobID: second, Status: "PENDING"},
	}})
	m.success(first)
	m.success(second)
}

func (m *maker) get(job, status string) {
	m.call(history.Call{Verb: history.Get, JobID: job, Status: status, Code: 200})
}

// fail runs the job once, to a bad end.
func (m *maker) fail(job, state, outcome string) {
	report := history.Fails
	switch outcome {
	case "permanent":
		report = history.Permanent
	case "snoozed":
		report = history.Snoozes
	}
	charged := 1
	if slices.Contains(uncharged, outcome) {
		charged = 0
	}
	m.claim(job)
	m.handler(job, report, history.Began, history.Ended)
	m.end(job, state, outcome, charged)
}

// back requeues dead jobs.
func (m *maker) back(dead ...string) {
	var changes []history.Change
	for _, job := range dead {
		changes = append(changes, m.write("dead_letters", job, nil),
			m.ledger(job, "state", "queued", "attempt", "0", "finished_at", "", "run_at", text(m.now)), m.listed("ready", job))
	}
	m.commit(changes...)
}

// redrive requeues two dead jobs, and says how many that were.
func (m *maker) redrive(said int) {
	one, other := m.submit("GOOD", "", history.OK), m.submit("GOOD", "", history.OK)
	m.fail(one, "dead", "permanent")
	m.fail(other, "dead", "permanent")
	m.back(one, other)
	m.call(history.Call{Verb: history.Redrive, Count: said, Code: 200})
	m.success(one)
	m.success(other)
}

// again lets the job be due again, and run to a good end.
func (m *maker) again(job string) {
	m.wait(10)
	m.promote(job)
	m.success(job)
}

// finish adds what is recorded at the end.
func (m *maker) finish(began history.Nanos) {
	m.wait(20)
	m.final = m.rows()
	m.run = history.Run{
		Seed: 1, Started: began, Ended: m.now, Duration: time.Duration(m.now - began),
		Lease: leaseFor, ReapInterval: time.Second, Grace: 10 * time.Second,
		MaxAttempts: map[string]int{"GOOD": 3, "BAD": 3}, MaxCrashes: 2, Retries: map[string]history.Backoff{"GOOD": backoff, "BAD": backoff},
		Timeouts: map[string]time.Duration{"GOOD": time.Minute, "BAD": time.Minute},
		Recorded: []string{"GOOD", "BAD"}, Obedient: []string{"GOOD"}, Synchronous: true,
		Minimums: history.Minimums{
			Jobs: plain, Faults: 3, Kinds: 3, StaleAttempts: 1, Failovers: 1, Unknown: 1, Reads: 3, Orchestrators: 1, Plugins: 1, Databases: 2,
		},
		Bounds: history.Bounds{
			ReclaimSameHost: time.Second, ReclaimElsewhere: 4 * time.Second,
			FirstAccept: 2 * time.Second, FirstClaim: 3 * time.Second, Overlap: 500 * time.Millisecond,
			Growth: history.Usage{Files: 5, Goroutines: 5},
		},
	}
	m.faults = append(m.faults,
		history.Fault{Kind: "kill-plugin", Target: "good", Injected: began, Healed: began + tick, PluginOnly: true},
		history.Fault{Kind: "no-such-thing", Injected: began, Healed: began, Error: "it cannot be injected here"})
	m.processes = []history.Process{
		{Kind: history.Orchestrator, Name: "one", PID: 10, PIDStarted: 5, Started: began, Ended: m.now, Wanted: true},
		{Kind: history.Plugin, Name: "good", PID: 100, PIDStarted: 7, Started: began, Ended: began + tick, Exit: -1, Signal: "killed"},
		{Kind: history.Database, Name: "first", PID: 300, PIDStarted: 3, Started: began, Ended: m.now, Wanted: true},
		{Kind: history.Database, Name: "second", PID: 301, PIDStarted: 4, Started: began, Ended: m.now, Wanted: true},
	}
	m.leaks = history.Leaks{
		Baseline: []history.Usage{{Name: "one", Descendants: 2, Files: 40, Goroutines: 90, Connections: 8}, {Name: history.DatabaseUsage, Connections: 8}},
		Healed:   []history.Usage{{Name: "one", Descendants: 2, Files: 42, Goroutines: 93, Connections: 9}, {Name: history.DatabaseUsage, Connections: 9}},
	}
	m.timings.Drained = 2 * time.Second
	m.timings.Reclaims = []history.Reclaim{
		{Case: "kill-orchestrator", SameHost: true, Lost: began, Reclaimed: began + tick},
		{Case: "stop-worker", Lost: began, Reclaimed: began + 12*tick},
	}
}

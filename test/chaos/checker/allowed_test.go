package main

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

func failoverOf(r *record) history.Fault {
	for _, fault := range r.faults {
		if fault.Failover {
			return fault
		}
	}
	panic("no failover")
}

// accepted adds a submission that was acknowledged just before the failover, and then lost.
func accepted(r *record, _ jobs) {
	at := failoverOf(r).Injected
	r.calls = append(r.calls, history.Call{
		Verb: history.Submit, Tenant: "acme", Outcome: history.OK, Code: 202, Started: at - 20, Returned: at - 10,
		Submissions: []history.Submission{{Mark: "lost", Key: "lost", JobType: "GOOD", JobID: "lost", Status: "PENDING"}},
	})
}

// What looks strange, but is allowed.
func TestWhatIsAllowedIsNoViolation(t *testing.T) {
	for _, c := range append([]control{
		{name: "a server decodes a transaction again", spoil: func(r *record, j jobs) {
			at := change(r, history.Delete, "leases", j.plain[0], 0)
			again := r.witness[at]
			r.witness = append(r.witness[:at+2:at+2], append([]history.Change{again}, r.witness[at+2:]...)...)
		}},
		{name: "a submission without an answer happens much later", more: func(m *maker, _ jobs) {
			job := m.id("job")
			m.call(history.Call{Verb: history.Submit, Tenant: "acme", Outcome: history.Unknown, Submissions: []history.Submission{
				{Mark: "late", Key: "late", JobType: "GOOD"},
			}})
			m.call(history.Call{Verb: history.Lookup, Tenant: "acme", Key: "late", Code: 200})
			m.wait(50)
			m.born(job, "GOOD", "late", "late")
			m.success(job)
		}},
		{name: "a submission without an answer never happens", more: func(m *maker, _ jobs) {
			m.call(history.Call{Verb: history.Submit, Tenant: "acme", Outcome: history.Unknown, Submissions: []history.Submission{
				{Mark: "never", Key: "never", JobType: "GOOD"},
			}})
		}},
		{name: "a standby that commits do not wait for loses an acknowledged job", spoil: func(r *record, j jobs) {
			r.run.Synchronous = false
			accepted(r, j)
		}},
		{name: "a client read before the failover what the new primary does not have", spoil: func(r *record, j jobs) {
			failover := failoverOf(r)
			r.calls = append(r.calls,
				history.Call{Verb: history.Get, JobID: j.child, Outcome: history.OK, Status: "COMPLETED", Started: failover.Injected - 20, Returned: failover.Injected - 10},
				history.Call{Verb: history.Get, JobID: j.child, Outcome: history.OK, Status: "PENDING", Started: failover.Healed + 10, Returned: failover.Healed + 20})
		}},
		{name: "a cancel comes too late for a handler that succeeds", more: func(m *maker, _ jobs) {
			job := m.submit("GOOD", "", history.OK)
			m.claim(job)
			m.call(history.Call{Verb: history.Cancel, JobID: job, Code: 200, Status: "RUNNING"})
			m.handler(job, history.Succeeds, history.Began, history.Done, history.Ended)
			m.end(job, "succeeded", "", 1)
		}},
		{name: "a killed handler has had its effect, and does it again", more: func(m *maker, _ jobs) {
			job := m.submit("GOOD", "", history.OK)
			m.claim(job)
			m.handler(job, "", history.Began, history.Done)
			m.reap(job)
			m.end(job, "queued", "interrupted", 0)
			m.success(job)
		}},
		{name: "a job is held again, and a release that got no answer comes late", more: func(m *maker, _ jobs) {
			job := m.submit("GOOD", "", history.OK)
			m.call(history.Call{Verb: history.Hold, JobID: job, Code: 200, Status: "PENDING"})
			m.call(history.Call{Verb: history.Release, JobID: job, Outcome: history.Unknown})
			m.call(history.Call{Verb: history.Hold, JobID: job, Code: 200, Status: "PENDING"})
			m.success(job)
		}},
		{name: "a job is read as it was just before its end", spoil: func(r *record, j jobs) {
			callOf(r, history.Get, j.plain[0]).Status = "RUNNING"
		}},
		{name: "a redrive is acknowledged, and its jobs come back", more: func(m *maker, _ jobs) { m.redrive(2) }},
		{name: "a job dies of its second crash, which came after its handler had failed", more: func(m *maker, _ jobs) {
			job := m.submit("GOOD", "", history.OK)
			m.fail(job, "queued", "suspected")
			m.fail(job, "dead", "crashed")
		}},
		{name: "retries wait for longer and longer, up to a limit", spoil: func(r *record, _ jobs) {
			r.run.Retries["BAD"] = history.Backoff{First: delay / 2, Factor: 2, Most: delay}
		}},
		{name: "a handler goes on beside the next while the machine stalls", more: twice, spoil: func(r *record, j jobs) {
			overlapping(r, j)
			at := r.effects[len(r.effects)-1].At
			r.timings.Lag.Stalls = []history.Stall{{From: at - history.Nanos(300*time.Millisecond), To: at}}
		}},
		{name: "a workflow is sent again, and its jobs run in order", more: func(m *maker, _ jobs) {
			first, second := m.workflow(history.Unknown)
			m.call(history.Call{Verb: history.Workflow, Tenant: "acme", Key: "workflow", Code: 202, Submissions: []history.Submission{
				{Mark: "first", JobType: "GOOD", JobID: first}, {Mark: "second", JobType: "GOOD", After: []string{"first"}, JobID: second},
			}})
			m.success(first)
			m.success(second)
		}},
		{name: "a job of a workflow starts after one that was skipped", more: func(m *maker, _ jobs) {
			first, second := m.workflow(history.OK)
			m.commit(m.write("ready", first, nil), m.ledger(first, "state", "canceled", "finished_at", text(m.now)))
			m.call(history.Call{Verb: history.Cancel, JobID: first, Code: 200, Status: "CANCELED"})
			m.success(second)
		}},
		{name: "a job of a workflow is canceled because one before it has died", more: func(m *maker, _ jobs) {
			first, second := m.workflow(history.OK)
			m.fail(first, "dead", "permanent")
			m.commit(m.write("ready", second, nil), m.ledger(second, "state", "canceled", "finished_at", text(m.now)))
		}},
		{name: "none of a workflow is made, whose submission was not answered", more: func(m *maker, _ jobs) {
			m.call(history.Call{Verb: history.Workflow, Tenant: "acme", Key: "never", Outcome: history.Unknown, Submissions: []history.Submission{
				{Mark: "never-1", JobType: "GOOD"}, {Mark: "never-2", JobType: "GOOD"},
			}})
		}},
		{name: "a job with a delay is held, released and begins at once", more: func(m *maker, _ jobs) {
			job := m.submit("GOOD", "", history.OK)
			m.calls[len(m.calls)-1].Submissions[0].Delay = time.Hour
			m.call(history.Call{Verb: history.Release, JobID: job, Code: 200})
			m.success(job)
		}},
		{name: "the first claim after a failover is late while all is paused", spoil: func(r *record, _ jobs) {
			f := &r.timings.Failovers[0]
			f.FirstClaim += history.Nanos(10 * time.Second)
			f.ClaimDisturbed = []string{"pause-all"}
		}},
		{name: "another fault goes on after a failover until the next", spoil: func(r *record, _ jobs) {
			f := &r.timings.Failovers[0]
			f.FirstAccept, f.FirstClaim = 0, 0
			f.AcceptDisturbed, f.ClaimDisturbed = []string{"stopped-pooler"}, []string{"stopped-pooler"}
		}},
	}, slices.Concat(operatorsMay, keptMay)...) {
		t.Run(c.name, func(t *testing.T) {
			r, j := good(func(m *maker, j jobs) {
				if c.more != nil {
					c.more(m, j)
				}
			})
			if c.spoil != nil {
				c.spoil(r, j)
			}
			verdicts := verdictsOn(t, r)
			var out bytes.Buffer
			require.NoError(t, show(&out, verdicts))
			require.Empty(t, violatedBy(verdicts), out.String())
		})
	}
}

// twice adds a job with two attempts, long after everything else.
func twice(m *maker, _ jobs) {
	m.wait(200)
	job := m.submit("GOOD", "", history.OK)
	m.fail(job, "retry", "failed")
	m.wait(10)
	m.promote(job)
	m.success(job)
}

// overlapping lets the first attempt at the last job go on for two seconds beside the second.
func overlapping(r *record, _ jobs) {
	var began []effect
	for _, e := range r.effects {
		if e.JobID == r.effects[len(r.effects)-1].JobID && e.Event == history.Began {
			began = append(began, e)
		}
	}
	at := slices.IndexFunc(r.effects, func(e effect) bool {
		return e.JobID == began[0].JobID && e.Fence == began[0].Fence && e.Event == history.Ended
	})
	late := r.effects[at]
	late.At = began[1].At + history.Nanos(2*time.Second)
	r.effects = append(slices.Delete(r.effects, at, at+1), late)
}

func TestASynchronousStandbyLosesNothing(t *testing.T) {
	r, j := good()
	accepted(r, j)
	require.Equal(t, []string{"V1", "V10"}, violatedBy(verdictsOn(t, r)))
}

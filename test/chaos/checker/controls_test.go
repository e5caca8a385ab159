package main

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

// control spoils one thing in a good run.
type control struct {
	name string
	// by is the invariant that is meant for it; others that are violated as well come after.
	by string
	// more happens before the end of the run; spoil changes its record.
	more  func(*maker, jobs)
	spoil func(*record, jobs)
}

func TestEverySpoiledRunIsCaughtByTheInvariantForIt(t *testing.T) {
	caught := make(map[string]bool)
	for _, c := range slices.Concat(jobControls, leaseControls, keptControls, attemptControls, operatorControls, answerControls, systemControls) {
		t.Run(c.name, func(t *testing.T) {
			more := func(m *maker, j jobs) {
				if c.more != nil {
					c.more(m, j)
				}
			}
			r, j := good(more)
			if c.spoil != nil {
				c.spoil(r, j)
			}
			verdicts := verdictsOn(t, r)
			var out bytes.Buffer
			require.NoError(t, show(&out, verdicts))
			require.ElementsMatch(t, strings.Fields(c.by), violatedBy(verdicts), out.String())
			for _, v := range verdicts {
				if v.Name == strings.Fields(c.by)[0] {
					require.NotEmpty(t, v.Violations)
					caught[v.Name] = true
				}
			}
		})
	}
	for _, invariant := range invariants {
		require.True(t, caught[invariant.name], "no control is for %s", invariant.name)
	}
}

// change finds a line of the witness: the first, or the one after the first nth.
func change(r *record, op history.Op, table, job string, nth int) int {
	for i, c := range r.witness {
		if c.Op == op && c.Table == table && jobOf(c) == job {
			if nth == 0 {
				return i
			}
			nth--
		}
	}
	panic("there is no " + string(op) + " of " + table + " for " + job)
}

// ending finds the line at which the job came to the state in the ledger.
func ending(r *record, job, state string) int {
	for i, c := range r.witness {
		if c.Op == history.Update && c.Table == "jobs" && jobOf(c) == job && c.Row["state"] == state {
			return i
		}
	}
	panic(job + " never becomes " + state)
}

func finalOf(r *record, table, job string) int {
	return slices.IndexFunc(r.final, func(row history.FinalRow) bool { return row.Table == table && row.Row["job_id"] == job })
}

// without leaves out a line.
func without[T any](list *[]T, at int) { *list = slices.Delete(*list, at, at+1) }

// callOf finds the first call with the verb about the job, or that submitted it.
func callOf(r *record, verb history.Verb, job string) *history.Call {
	for i := range r.calls {
		c := &r.calls[i]
		if c.Verb == verb && (c.JobID == job || len(c.Submissions) > 0 && c.Submissions[0].JobID == job) {
			return c
		}
	}
	panic("no call")
}

// effectsOf leaves out or changes the effects of a job.
func effectsOf(r *record, job string, keep func(*history.Effect) bool) {
	kept := r.effects[:0]
	for _, e := range r.effects {
		if e.JobID != job || keep(&e.Effect) {
			kept = append(kept, e)
		}
	}
	r.effects = kept
}

var jobControls = []control{
	{name: "a job that was acknowledged is gone", by: "V1 V10", spoil: func(r *record, j jobs) { without(&r.final, finalOf(r, "jobs", j.plain[3])) }},
	{name: "a job is lost, and its client was told another job", by: "V1", more: func(m *maker, j jobs) {
		m.call(history.Call{Verb: history.Submit, Tenant: "acme", Code: 202, Submissions: []history.Submission{
			{Mark: "lost", JobType: "GOOD", JobID: j.plain[0], Status: "COMPLETED"},
		}})
	}},
	{name: "a batch is answered with its jobs in another order", by: "V1", more: func(m *maker, _ jobs) {
		m.batch()
		told := m.calls[len(m.calls)-1].Submissions
		told[0].JobID, told[1].JobID = told[1].JobID, told[0].JobID
	}},
	{name: "a batch is answered with one job twice", by: "V1", more: func(m *maker, _ jobs) {
		m.batch()
		told := m.calls[len(m.calls)-1].Submissions
		told[1].JobID = told[0].JobID
	}},
	{name: "a job of which no client knows is gone", by: "V1", spoil: func(r *record, j jobs) {
		without(&r.final, finalOf(r, "jobs", j.unsure))
		r.calls = slices.DeleteFunc(r.calls, func(c history.Call) bool { return c.JobID == j.unsure || c.Found == j.unsure })
	}},
	{name: "a job is acknowledged before it is there", by: "V1", spoil: func(r *record, j jobs) {
		r.witness[change(r, history.Insert, "jobs", j.plain[0], 0)].Committed += tick * 3 / 4
	}},
	{name: "a job is left waiting", by: "V1", more: func(m *maker, _ jobs) { m.submit("GOOD", "", history.OK) }},
	{name: "a job is deleted before its end", by: "V1", more: func(m *maker, _ jobs) {
		job := m.submit("GOOD", "", history.Unknown)
		m.commit(m.write("ready", job, nil), m.write("jobs", job, nil))
	}},
	{name: "nobody submitted a job", by: "V2", more: func(m *maker, _ jobs) {
		job := m.id("job")
		m.born(job, "GOOD", "", "nobody")
		m.success(job)
	}},
	{name: "a refused submission made a job", by: "V2", more: func(m *maker, _ jobs) { m.success(m.submit("GOOD", "", history.Refused)) }},
	{name: "one submission made two jobs", by: "V2", more: func(m *maker, _ jobs) {
		job := m.submit("GOOD", "", history.OK)
		m.success(job)
		twin := m.id("job")
		m.born(twin, "GOOD", "", "mark-"+job)
		m.success(twin)
	}},
	{name: "a job is not what was submitted", by: "V2 V10", spoil: func(r *record, j jobs) {
		r.final[finalOf(r, "jobs", j.plain[1])].Row["tenant"] = "other"
	}},
	{name: "a child is made without its parent's success", by: "V2", spoil: func(r *record, j jobs) {
		for _, table := range []string{"jobs", "ready"} {
			r.witness[change(r, history.Insert, table, j.child, 0)].LSN++
		}
	}},
	{name: "a follow-up is missing", by: "V2", more: func(m *maker, _ jobs) {
		m.success(m.submit("GOOD", "", history.OK))
		m.effects[len(m.effects)-1].FollowUps = 1
	}},
	{name: "a follow-up is made twice", by: "V2", more: func(m *maker, _ jobs) {
		parent := m.submit("GOOD", "", history.OK)
		m.success(parent)
		ended := len(m.effects) - 1
		first, second := m.followUp(parent), m.followUp(parent)
		m.effects[ended].FollowUps = 1
		m.success(first)
		m.success(second)
	}},
	{name: "an attempt that was refused leaves a follow-up", by: "V2", spoil: func(r *record, j jobs) {
		r.final[finalOf(r, "jobs", j.child)].Row["tags"] = "{" + history.FenceTag(2) + "}"
	}},
	{name: "a workflow is made twice", by: "V3 V9", more: func(m *maker, _ jobs) {
		for _, how := range []history.Outcome{history.Unknown, history.OK} {
			first, second := m.workflow(how)
			m.success(first)
			m.success(second)
		}
	}},
	{name: "a job is canceled although nobody asked for that", by: "V1", more: func(m *maker, _ jobs) {
		job := m.submit("GOOD", "", history.OK)
		m.commit(m.write("ready", job, nil), m.ledger(job, "state", "canceled", "finished_at", text(m.now)))
	}},
	{name: "a half of a workflow is made", by: "V2", more: func(m *maker, _ jobs) {
		first, second := m.workflow(history.OK)
		m.success(first)
		m.success(second)
	}, spoil: func(r *record, _ jobs) {
		for i := range r.calls {
			if c := &r.calls[i]; c.Verb == history.Workflow {
				c.Outcome = history.Unknown
				c.Submissions = append(c.Submissions, history.Submission{Mark: "third", JobType: "GOOD"})
			}
		}
	}},
	{name: "a job of a workflow is lost", by: "V1", more: func(m *maker, _ jobs) {
		first, second := m.workflow(history.OK)
		m.success(first)
		m.success(second)
	}, spoil: func(r *record, _ jobs) {
		for i, row := range r.final {
			if row.Row.Mark() == "second" {
				without(&r.final, i)
				return
			}
		}
	}},
	{name: "two jobs have one key", by: "V3 V10", more: func(m *maker, _ jobs) {
		m.success(m.submit("GOOD", "twice", history.OK))
		m.success(m.submit("GOOD", "twice", history.OK))
	}},
	{name: "the same key is answered with two ids", by: "V3 V1 V10", more: func(m *maker, j jobs) {
		m.call(history.Call{Verb: history.Submit, Tenant: "acme", Submissions: []history.Submission{
			{Mark: "mark-" + j.plain[0], Key: "key-0", JobType: "GOOD", JobID: "another"},
		}})
	}},
	{name: "a transition is not in the table", by: "V4 V7", more: func(m *maker, _ jobs) {
		job := m.submit("GOOD", "", history.OK)
		m.commit(m.write("ready", job, nil), m.ledger(job, "state", "dead", "fence", "1", "finished_at", text(m.now)), m.listed("dead_letters", job))
	}},
	{name: "a job that was given back is in no list", by: "V4 V1", more: func(m *maker, _ jobs) {
		job := m.submit("GOOD", "", history.OK)
		m.claim(job)
		m.handler(job, "", history.Began)
		m.end(job, "queued", "given_back", 0)
		delete(m.tables["ready"], job)
		at := change(&m.record, history.Insert, "ready", job, 1)
		without(&m.witness, at)
	}},
	{name: "a job dies while it waits for its retry", by: "V4", more: func(m *maker, _ jobs) {
		job := m.submit("GOOD", "", history.OK)
		m.fail(job, "retry", "failed")
		m.wait(10)
		m.commit(m.write("timers", job, nil), m.ledger(job, "state", "dead"), m.listed("dead_letters", job))
	}},
	{name: "a job is in two lists", by: "V4", spoil: func(r *record, j jobs) {
		at := change(r, history.Insert, "ready", j.plain[2], 0)
		r.witness = slices.Insert(r.witness, at, r.witness[at])
	}},
	{name: "the last change is not the row", by: "V4", spoil: func(r *record, j jobs) {
		r.final[finalOf(r, "jobs", j.plain[2])].Row["attempt"] = "2"
	}},
	{name: "the history of attempts is gone in the end", by: "V4", spoil: func(r *record, j jobs) {
		without(&r.final, finalOf(r, "unsuccessful_attempts", j.retried))
	}},
	{name: "an attempt has another outcome in the end", by: "V4", spoil: func(r *record, j jobs) {
		r.final[finalOf(r, "unsuccessful_attempts", j.retried)].Row = history.Row{"job_id": j.retried, "fence": "1", "lease_id": "", "outcome": "crashed"}
	}},
	{name: "a succeeded job is canceled", by: "V1 V5 V10", more: func(m *maker, j jobs) {
		m.commit(m.ledger(j.plain[5], "state", "canceled"))
	}},
	{name: "the end of a job is written again", by: "V5", more: func(m *maker, j jobs) {
		m.commit(m.ledger(j.plain[5], "finished_at", text(m.now)))
	}},
	{name: "a dead job lives again although nobody requeued it", by: "V5", spoil: func(r *record, j jobs) {
		callOf(r, history.Requeue, j.dead).Outcome = history.Refused
	}},
}

// outliving is the id of a process.
const outliving = 200

var leaseControls = []control{
	{name: "an attempt has its effect twice", by: "V6", spoil: func(r *record, j jobs) {
		at := slices.IndexFunc(r.effects, func(e effect) bool { return e.JobID == j.plain[1] && e.Event == history.Done })
		r.effects = append(r.effects, r.effects[at])
	}},
	{name: "a lease id is issued twice", by: "V6", spoil: func(r *record, j jobs) {
		id := r.witness[change(r, history.Insert, "leases", j.plain[0], 0)].Row["lease_id"]
		at := change(r, history.Insert, "leases", j.stopped, 0)
		r.witness[at].Row["lease_id"] = id
		r.witness[change(r, history.Insert, "unsuccessful_attempts", j.stopped, 0)].Row["lease_id"] = id
	}},
	{name: "a lease is taken over before it has expired", by: "V6", spoil: func(r *record, j jobs) {
		r.witness[change(r, history.Insert, "leases", j.stale, 0)].Row["expires_at"] = text(history.Nanos(time.Hour) + r.run.Started)
	}},
	{name: "an expired lease is renewed", by: "V6", more: func(m *maker, _ jobs) {
		job := m.submit("GOOD", "", history.OK)
		m.claim(job)
		m.handler(job, "", history.Began)
		m.wait(20)
		row := maps.Clone(m.tables["leases"][job])
		row["expires_at"] = text(m.now + history.Nanos(leaseFor))
		m.commit(m.write("leases", job, row))
		m.handler(job, history.Succeeds, history.Done, history.Ended)
		m.end(job, "succeeded", "", 1)
	}},
	{name: "a fence is issued twice", by: "V6 V9", more: func(m *maker, _ jobs) {
		job := m.submit("GOOD", "", history.OK)
		m.fail(job, "retry", "failed")
		m.wait(10)
		m.commit(m.write("timers", job, nil), m.ledger(job, "state", "queued", "fence", "0"), m.listed("ready", job))
		m.success(job)
	}},
	{name: "two claims of one job hold at a time", by: "V6 V7", more: func(m *maker, _ jobs) {
		job := m.submit("GOOD", "", history.OK)
		m.claim(job)
		first := m.tables["leases"][job]
		m.handler(job, "", history.Began)
		m.commit(m.write("leases", job, nil))
		m.witness = m.witness[:len(m.witness)-1]
		second := maps.Clone(first)
		second["lease_id"], second["fence"] = m.id("lease"), "2"
		m.commit(m.write("leases", job, second))
		m.handler(job, history.Succeeds, history.Began, history.Done, history.Ended)
		m.handlerOf(job, first, history.Succeeds, history.Done, history.Ended)
		m.tables["leases"][job] = first
		m.end(job, "succeeded", "", 1)
	}},
	{name: "a handler runs without a lease", by: "V6", spoil: func(r *record, j jobs) {
		r.effects = append(r.effects, effect{history.Effect{Event: history.Began, JobID: j.canceled, Mark: "mark-" + j.canceled, Fence: 1, At: r.run.Ended, JobType: "GOOD"}, "effects/w-good.jsonl:999", "w"})
	}},
	{name: "a handler runs under a claim that the standby did not have", by: "V6", more: func(m *maker, j jobs) {
		m.effects = slices.Insert(m.effects, 0, effect{history.Effect{Event: history.Ended, JobID: j.claimed, Mark: "mark-" + j.claimed, Fence: 1, At: 1, JobType: "GOOD", Attempt: 1}, "effects/w-good.jsonl:0", "w"})
		for i, e := range m.effects {
			if e.JobID == j.claimed && e.Event == history.Began {
				e.At++
				m.effects = slices.Insert(m.effects, i, e)
				break
			}
		}
	}},
	{name: "two handlers run beside one another", by: "V6", spoil: func(r *record, j jobs) {
		effectsOf(r, j.retried, func(e *history.Effect) bool {
			if e.Fence == 1 && e.Event == history.Ended {
				e.At += history.Nanos(10 * time.Second)
			}
			return true
		})
	}},
	{name: "a handler goes on after its lease has expired, and nobody follows", by: "V6", more: func(m *maker, _ jobs) {
		m.wait(200)
		m.fail(m.submit("GOOD", "", history.OK), "dead", "permanent")
		m.effects[len(m.effects)-1].At += history.Nanos(10 * time.Second)
	}},
	{name: "a handler goes on when its time is over", by: "V6", spoil: func(r *record, _ jobs) {
		r.run.Timeouts["GOOD"], r.run.Bounds.Overlap = time.Duration(tick), time.Millisecond
	}},
	{name: "a handler begins before its claim", by: "V6", spoil: func(r *record, j jobs) {
		effectsOf(r, j.plain[0], func(e *history.Effect) bool {
			if e.Event == history.Began {
				e.At -= history.Nanos(time.Second)
			}
			return true
		})
	}},
	{name: "the process of an attempt lives on beside the next", by: "V6", more: func(m *maker, _ jobs) {
		job := m.submit("GOOD", "", history.OK)
		m.claim(job)
		m.handler(job, "", history.Began)
		m.effects[len(m.effects)-1].PID = outliving
		m.end(job, "retry", "lease_expired", 1)
		m.wait(10)
		m.promote(job)
		m.success(job)
	}, spoil: func(r *record, _ jobs) {
		r.processes = append(r.processes, history.Process{Kind: history.Plugin, Name: "good", PID: outliving, PIDStarted: 7, Ended: r.run.Ended})
	}},
	{name: "an attempt runs at another orchestrator than that of its lease", by: "V6", spoil: func(r *record, j jobs) {
		for i := range r.effects {
			if r.effects[i].JobID == j.plain[0] {
				r.effects[i].by = "another"
			}
		}
	}},
	{name: "a handler is told that it is the first attempt, and it is the second", by: "V6", spoil: func(r *record, j jobs) {
		effectsOf(r, j.retried, func(e *history.Effect) bool { e.Attempt = 1; return true })
	}},
	{name: "a job is run by the handler of another type", by: "V6", spoil: func(r *record, j jobs) {
		effectsOf(r, j.plain[0], func(e *history.Effect) bool { e.JobType = "BAD"; return true })
	}},
	{name: "a stale attempt is accepted", by: "V7 V6", more: func(m *maker, _ jobs) {
		job := m.submit("GOOD", "", history.OK)
		m.claim(job)
		m.handler(job, "", history.Began)
		first := m.reap(job)
		m.handlerOf(job, first, history.Succeeds, history.Done, history.Ended)
		m.end(job, "succeeded", "", 1)
		m.witness[ending(&m.record, job, "succeeded")].Row["lease_id"] = first["lease_id"]
		m.tables["jobs"][job]["lease_id"] = first["lease_id"]
	}},
	{name: "an attempt is ended under another lease", by: "V7", spoil: func(r *record, j jobs) {
		r.witness[change(r, history.Insert, "unsuccessful_attempts", j.retried, 0)].Row["lease_id"] = "another"
	}},
	{name: "an attempt ends without a lease", by: "V7 V4 V6", more: func(m *maker, _ jobs) {
		job := m.submit("GOOD", "", history.OK)
		m.success(job)
		for i, c := range m.witness {
			if c.Table == "leases" && jobOf(c) == job && c.Op == history.Insert {
				m.witness[i].Table = "elsewhere"
			}
		}
		at := slices.IndexFunc(m.witness, func(c history.Change) bool { return c.Table == "leases" && jobOf(c) == job })
		without(&m.witness, at)
	}},
}

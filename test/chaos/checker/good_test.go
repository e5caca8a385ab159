package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

// maker makes the record of a run in which nothing went wrong although much was
// done to it. Its clock stands still within a step, and moves on by tick between two.
type maker struct {
	record
	now        history.Nanos
	generation int
	lsn        history.LSN
	ids        int
	tables     map[string]map[string]history.Row // by table and job, or worker
	numbers    map[string]int                    // of the clients' calls
	told       map[string]int                    // which attempts those with these fences are, by job and fence
}

const (
	tick     = history.Nanos(200 * time.Millisecond)
	leaseFor = 2 * time.Second
	delay    = time.Second
)

// backoff is that of all types.
var backoff = history.Backoff{First: delay, Factor: 1, Most: delay, Spread: 1}

func (m *maker) wait(ticks int) { m.now += history.Nanos(ticks) * tick }

func (m *maker) id(kind string) string {
	m.ids++
	return fmt.Sprintf("%s-%04d", kind, m.ids)
}

func text(at history.Nanos) string {
	return at.Time().Format("2006-01-02 15:04:05.999999999-07")
}

// commit writes a transaction to the witness.
func (m *maker) commit(changes ...history.Change) {
	m.wait(1)
	m.lsn += 0x100
	for _, c := range changes {
		c.Generation, c.LSN, c.XID, c.Committed = m.generation, m.lsn, uint32(m.lsn), m.now
		m.witness = append(m.witness, c)
	}
}

// write inserts, updates or deletes the row of a job, or a worker.
func (m *maker) write(table, job string, row history.Row) history.Change {
	if m.tables[table] == nil {
		m.tables[table] = make(map[string]history.Row)
	}
	old, ok := m.tables[table][job]
	change := history.Change{Table: table, Row: maps.Clone(row), Op: history.Insert}
	switch {
	case row == nil:
		change.Op, change.Old = history.Delete, history.Row{"job_id": job}
		if table == "workers" {
			change.Old = history.Row{"worker_id": job}
		}
		if !ok {
			panic("nothing to delete from " + table + " for " + job)
		}
		delete(m.tables[table], job)
		return change
	case ok:
		change.Op, change.Old = history.Update, old
	}
	m.tables[table][job] = row
	return change
}

// ledger changes columns of the job's row in the ledger. An empty value is null.
func (m *maker) ledger(job string, columns ...string) history.Change {
	row := maps.Clone(m.tables["jobs"][job])
	if row == nil {
		row = history.Row{"job_id": job}
	}
	for i := 0; i < len(columns); i += 2 {
		if row[columns[i]] = columns[i+1]; columns[i+1] == "" {
			delete(row, columns[i])
		}
	}
	return m.write("jobs", job, row)
}

func (m *maker) listed(table, job string) history.Change {
	return m.write(table, job, history.Row{"job_id": job})
}

func (m *maker) call(c history.Call) {
	c.Client, c.Outcome = "client-1", cmpOutcome(c.Outcome)
	m.numbers[c.Client]++
	c.Number, c.Started, c.Returned = m.numbers[c.Client], m.now-tick/4, m.now+tick/4
	m.calls = append(m.calls, c)
	m.wait(1)
}

func cmpOutcome(o history.Outcome) history.Outcome {
	if o == "" {
		return history.OK
	}
	return o
}

// submit makes a job; how is the outcome of the call.
func (m *maker) submit(jobType, key string, how history.Outcome) string {
	job := m.id("job")
	mark := "mark-" + job
	m.born(job, jobType, key, mark)
	s := history.Submission{Mark: mark, Key: key, JobType: jobType}
	c := history.Call{Verb: history.Submit, Tenant: "acme", Outcome: how}
	if how == history.OK {
		s.JobID, s.Status, c.Code = job, "PENDING", 202
	}
	c.Submissions = []history.Submission{s}
	m.call(c)
	return job
}

func (m *maker) born(job, jobType, key, mark string) {
	m.commit(m.ledger(job, "tenant", "acme", "job_type", jobType, "idempotency_key", key, "tags", "{"+history.MarkTag(mark)+"}",
		"max_attempts", "3", "attempt", "0", "fence", "0", "interruptions", "0", "state", "queued", "run_at", text(m.now), "created_at", text(m.now)),
		m.listed("ready", job))
}

func (m *maker) number(job, column string) int {
	n, _ := strconv.Atoi(m.tables["jobs"][job][column])
	return n
}

func (m *maker) claim(job string) {
	m.wait(1)
	m.now -= tick // commit adds it
	m.told[fmt.Sprintf("%s %d", job, m.number(job, "fence")+1)] = m.number(job, "attempt") + 1
	m.commit(m.write("ready", job, nil), m.write("leases", job, history.Row{
		"job_id": job, "lease_id": m.id("lease"), "fence": strconv.Itoa(m.number(job, "fence") + 1), "worker_id": "w/1",
		"claimed_at": text(m.now + tick), "expires_at": text(m.now + tick + history.Nanos(leaseFor)), "cancel_requested": "f",
	}))
}

// handler writes what the handler of the job's present attempt does.
func (m *maker) handler(job string, report history.Report, events ...history.EffectEvent) {
	m.handlerOf(job, m.tables["leases"][job], report, events...)
}

func (m *maker) handlerOf(job string, held history.Row, report history.Report, events ...history.EffectEvent) {
	fence, _ := strconv.ParseInt(held["fence"], 10, 64)
	row := m.tables["jobs"][job]
	mark := row.Mark()
	if mark == "" {
		mark = history.ChildMark(row["parent_id"])
	}
	for _, event := range events {
		m.wait(1)
		e := history.Effect{Event: event, JobID: job, JobType: row["job_type"], Mark: mark, Fence: fence, PID: 100, PIDStarted: 7, At: m.now}
		if event == history.Ended {
			e.Report = report
		}
		e.Attempt = m.told[job+" "+held["fence"]]
		m.effects = append(m.effects, effect{e, fmt.Sprintf("effects/w-good.jsonl:%d", len(m.effects)+1), "w"})
	}
}

// end ends the job's attempt. The outcome is that of its row, or succeeded.
func (m *maker) end(job, state, outcome string, charged int) {
	held := m.tables["leases"][job]
	changes := []history.Change{m.write("leases", job, nil)}
	columns := []string{"fence", held["fence"], "attempt", strconv.Itoa(m.number(job, "attempt") + charged), "state", state}
	at := m.now + tick
	switch {
	case outcome == "crashed" || outcome == "suspected":
		columns = append(columns, "crashes", strconv.Itoa(m.number(job, "crashes")+1))
	case outcome == "interrupted" && charged == 0:
		columns = append(columns, "interruptions", strconv.Itoa(m.number(job, "interruptions")+1))
	}
	switch state {
	case "succeeded":
		columns = append(columns, "lease_id", held["lease_id"], "finished_at", text(at))
	case "canceled":
		columns = append(columns, "finished_at", text(at))
	case "dead":
		columns = append(columns, "finished_at", text(at))
		changes = append(changes, m.listed("dead_letters", job))
	case "retry":
		columns = append(columns, "run_at", text(at+history.Nanos(delay)))
		changes = append(changes, m.listed("timers", job))
	case "queued":
		changes = append(changes, m.listed("ready", job))
	}
	changes = append(changes, m.ledger(job, columns...))
	if state != "succeeded" {
		changes = append(changes, m.write("unsuccessful_attempts", job+" "+held["fence"], history.Row{
			"job_id": job, "fence": held["fence"], "lease_id": held["lease_id"], "outcome": outcome, "ended_at": text(at),
		}))
	}
	m.commit(changes...)
}

func (m *maker) promote(job string) {
	m.commit(m.write("timers", job, nil), m.ledger(job, "state", "queued"), m.listed("ready", job))
}

// reap takes the job's lease over, and returns it as it was.
func (m *maker) reap(job string) history.Row {
	m.wait(int(history.Nanos(leaseFor)/tick) + 1)
	return m.take(job)
}

// take is reap, whether the lease has expired or not.
func (m *maker) take(job string) history.Row {
	lost := m.tables["leases"][job]
	row := maps.Clone(lost)
	row["kept"], row["lease_id"], row["expires_at"] = "f", m.id("lease"), text(m.now+tick+history.Nanos(leaseFor))
	m.commit(m.write("leases", job, row))
	return lost
}

// success runs the job once, to a good end.
func (m *maker) success(job string) {
	m.claim(job)
	m.handler(job, history.Succeeds, history.Began, history.Done, history.Ended)
	m.end(job, "succeeded", "", 1)
}

// failOver makes another server the primary. A claim of the job, the renewal of that, and one of the
// worker have not reached it.
func (m *maker) failOver(lost string) {
	kept, workers := maps.Clone(m.tables["ready"]), maps.Clone(m.tables["workers"])
	branch := m.lsn
	m.claim(lost)
	renewed := maps.Clone(m.tables["leases"][lost])
	renewed["expires_at"] = text(m.now + history.Nanos(leaseFor))
	m.commit(m.write("leases", lost, renewed))
	m.beat()
	delete(m.tables["leases"], lost)
	m.tables["ready"], m.tables["workers"] = kept, workers
	fault := history.Fault{Kind: "failover", Target: "primary", Injected: m.now, Healed: m.now + 5*tick, Failover: true}
	m.faults = append(m.faults, fault)
	m.wait(5)
	m.generation++
	m.lsn = branch + 0x1000
	m.witness = append(m.witness, history.Change{Op: history.Promoted, Generation: m.generation, LSN: branch})
	for _, row := range m.rows() {
		m.witness = append(m.witness, history.Change{
			Op: history.Snapshot, Generation: m.generation, LSN: m.lsn, Committed: m.now, Table: row.Table, Row: maps.Clone(row.Row),
		})
	}
	m.timings.Failovers = append(m.timings.Failovers, history.Failover{Kind: "kill", Answers: m.now, FirstAccept: m.now + tick, FirstClaim: m.now + 2*tick})
}

func (m *maker) rows() []history.FinalRow {
	var all []history.FinalRow
	for _, table := range slices.Sorted(maps.Keys(m.tables)) {
		for _, job := range slices.Sorted(maps.Keys(m.tables[table])) {
			all = append(all, history.FinalRow{Table: table, Row: m.tables[table][job]})
		}
	}
	return all
}

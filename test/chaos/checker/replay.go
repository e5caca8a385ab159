package main

import (
	"cmp"
	"fmt"
	"time"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

// replay makes the stories of the witness. What only an old primary has seen is not part of
// them, but its leases are kept.
func (r *record) replay() error {
	r.jobs = make(map[string]*story)
	r.index()
	player := &player{record: r, now: empty(), old: make(map[string]*lease), played: make(map[history.LSN]uint32)}
	markOrphans(r.witness)
	r.gaps = gapsOf(r.witness)
	r.undone = make(map[string][]gap)
	for _, change := range r.witness {
		if change.Orphaned {
			job := jobOf(change)
			r.undone[job] = append(r.undone[job], gap{change.Committed, r.gaps[change.Generation].to})
		}
	}
	for from := 0; from < len(r.witness); {
		to := from + 1
		for to < len(r.witness) && sameTransaction(r.witness[from], r.witness[to]) {
			to++
		}
		if err := player.play(from, to); err != nil {
			return err
		}
		from = to
	}
	player.settle()
	r.last, r.generations = player.now, player.generation+1
	return nil
}

// index sorts what handlers wrote by attempt, and processes by what they know of themselves.
func (r *record) index() {
	r.handled, r.same = make(map[attempt]handled), make(map[processID][]int)
	for i := range r.effects {
		e := &r.effects[i]
		h := r.handled[attempt{e.JobID, e.Fence}]
		switch e.Event {
		case history.Began:
			h.began = e
		case history.Done:
			h.done = e
		case history.Ended:
			h.ended = e
		}
		r.handled[attempt{e.JobID, e.Fence}] = h
	}
	for i, p := range r.processes {
		id := processID{p.PID, p.PIDStarted}
		r.same[id] = append(r.same[id], i)
	}
}

// processOf finds the process that wrote the effect, by index: the one that ended first, if there are
// several; -1 if the census saw none.
func (r *record) processOf(e effect) int {
	first := -1
	for _, i := range r.same[processID{e.PID, e.PIDStarted}] {
		if first < 0 || r.processes[i].Ended != 0 && r.processes[i].Ended < r.processes[first].Ended {
			first = i
		}
	}
	return first
}

// markOrphans marks what a primary committed after the next one had branched off.
func markOrphans(witness []history.Change) {
	branch := make(map[int]history.LSN)
	for _, change := range witness {
		if change.Op == history.Promoted {
			branch[change.Generation-1] = change.LSN
		}
	}
	for i := range witness {
		if at, ok := branch[witness[i].Generation]; ok && witness[i].Op != history.Promoted && witness[i].Op != history.Snapshot {
			witness[i].Orphaned = witness[i].LSN > at
		}
	}
}

// gapsOf finds when nobody looked.
func gapsOf(witness []history.Change) (gaps []gap) {
	var last history.Nanos
	open := false
	for _, change := range witness {
		switch {
		case change.Op == history.Promoted:
			if open { // nothing was seen of the generation before
				gaps = gaps[:len(gaps)-1]
			}
			gaps, open = append(gaps, gap{last, history.Infinity}), true
		case change.Op != history.Snapshot && !change.Orphaned:
			if last = max(last, change.Committed); open {
				gaps[len(gaps)-1].to, open = change.Committed, false
			}
		}
	}
	return gaps
}

func sameTransaction(a, b history.Change) bool {
	if a.Op == history.Promoted || a.Op == history.Snapshot || b.Op == history.Promoted || b.Op == history.Snapshot {
		return false
	}
	return a.Generation == b.Generation && a.LSN == b.LSN && a.XID == b.XID
}

// player replays the witness into tables.
type player struct {
	*record
	now        *tables
	generation int
	lsn        history.LSN
	// played are the transactions of the generation: a server sends some again.
	played map[history.LSN]uint32
	// old are the leases by job that only the old primary has seen.
	old map[string]*lease
	// snapshot are the rows of a generation that has just begun; nil when it is complete.
	snapshot *tables
}

// play replays the lines from..to of the witness, which are one transaction.
func (p *player) play(from, to int) error {
	first := p.witness[from]
	switch {
	case first.Op == history.Promoted:
		p.settle()
		p.generation, p.lsn, p.snapshot = first.Generation, 0, empty()
		clear(p.old)
		clear(p.played)
		return nil
	case first.Op == history.Snapshot:
		into := cmp.Or(p.snapshot, p.now)
		_, err := p.apply(into, from)
		return err
	case first.Generation != p.generation:
		return fmt.Errorf("%s: generation %d follows %d without a promotion", witnessLine(from), first.Generation, p.generation)
	case first.LSN <= p.lsn:
		if p.played[first.LSN] != first.XID {
			return fmt.Errorf("%s: transaction %d follows later ones, and was not there before", witnessLine(from), first.XID)
		}
		return nil // decoded again
	}
	p.settle()
	p.lsn, p.played[first.LSN] = first.LSN, first.XID
	if first.Orphaned {
		return p.keepLeases(from, to)
	}
	steps := make(map[string]*step)
	var order []string
	for i := from; i < to; i++ {
		job := jobOf(p.witness[i])
		if job != "" && steps[job] == nil {
			order = append(order, job)
			steps[job] = &step{
				line: witnessLine(i), generation: p.generation, lsn: first.LSN, committed: first.Committed,
				from: p.now.state(job), before: p.now.ledger[job], held: p.now.leases[job],
			}
		}
	}
	for i := from; i < to; i++ {
		attempt, err := p.apply(p.now, i)
		if err != nil {
			return err
		}
		if attempt != nil {
			steps[attempt["job_id"]].attempt = attempt
		}
	}
	for _, job := range order {
		s := steps[job]
		s.to, s.after, s.holds, s.listed = p.now.state(job), p.now.ledger[job], p.now.leases[job], p.now.listed(job)
		one := p.story(job)
		one.steps = append(one.steps, s)
		if s.before == nil && s.after != nil {
			one.born = s
		}
	}
	return nil
}

// settle makes the snapshot of a new generation the present: what is different happened
// while nobody looked.
func (p *player) settle() {
	if p.snapshot == nil {
		return
	}
	jobs := make(map[string]bool)
	for job := range p.now.ledger {
		jobs[job] = true
	}
	for job := range p.snapshot.ledger {
		jobs[job] = true
	}
	for job := range jobs {
		one := p.story(job)
		one.steps = append(one.steps, &step{
			line: fmt.Sprintf("the snapshot of generation %d", p.generation), generation: p.generation, unseen: true,
			from: p.now.state(job), before: p.now.ledger[job], held: p.now.leases[job],
			to: p.snapshot.state(job), after: p.snapshot.ledger[job], holds: p.snapshot.leases[job], listed: p.snapshot.listed(job),
		})
	}
	p.now, p.snapshot = p.snapshot, nil
}

func (p *player) story(job string) *story {
	if p.jobs[job] == nil {
		p.jobs[job] = &story{id: job}
	}
	return p.jobs[job]
}

func jobOf(change history.Change) string {
	return cmp.Or(change.Row["job_id"], change.Old["job_id"])
}

// apply makes one change. It returns the row of an attempt that has ended, if it is one.
func (p *player) apply(t *tables, at int) (history.Row, error) {
	change := p.witness[at]
	job := jobOf(change)
	switch change.Table {
	case "jobs":
		if change.Op == history.Delete {
			delete(t.ledger, job)
		} else {
			t.ledger[job] = change.Row
		}
	case "leases":
		if change.Op == history.Delete {
			delete(t.leases, job)
			return nil, nil
		}
		now, err := p.leased(t.leases[job], at)
		if err != nil {
			return nil, err
		}
		t.leases[job] = now
	case "ready", "parked", "timers", "dead_letters":
		switch change.Op {
		case history.Delete:
			t.lists[change.Table][job]--
		case history.Insert, history.Snapshot:
			t.lists[change.Table][job]++
		case history.Update, history.Promoted:
		}
	case "unsuccessful_attempts":
		if change.Op == history.Delete {
			t.note(change.Old, true)
			return nil, nil
		}
		if t.note(change.Row, false); change.Op == history.Insert {
			return change.Row, nil
		}
	}
	return nil, nil
}

// tolerance is how long a server may take between two looks at its clock in one statement.
const tolerance = 100 * time.Millisecond

// leased is the lease after a change of its row, which was that of the lease before.
func (p *player) leased(before *lease, at int) (*lease, error) {
	change := p.witness[at]
	fence, err1 := change.Row.Int("fence")
	claimed, err2 := change.Row.Time("claimed_at")
	expires, err3 := change.Row.Time("expires_at")
	if err := cmp.Or(err1, err2, err3); err != nil {
		return nil, fmt.Errorf("%s: %w", witnessLine(at), err)
	}
	id := change.Row["lease_id"]
	if change.Op == history.Snapshot {
		// Another primary knows the same leases.
		before = p.now.leases[change.Row["job_id"]]
	}
	if before != nil && before.id == id && before.fence == fence {
		// A renewal counts from when it was made.
		if renewed := expires - history.Nanos(p.run.Lease); change.Op == history.Update && renewed > before.expires+history.Nanos(tolerance) {
			before.revived = append(before.revived, witnessLine(at))
		}
		before.expires = expires
		return before, nil
	}
	now := &lease{
		job: change.Row["job_id"], id: id, fence: fence, line: witnessLine(at), committed: change.Committed,
		claimed: claimed, expires: expires, orphaned: change.Orphaned, worker: change.Row["worker_id"],
	}
	if before != nil && change.Op == history.Update {
		now.over, before.taken = before, change.Committed
	}
	p.leases = append(p.leases, now)
	return now, nil
}

// keepLeases remembers the leases of a transaction that only an old primary has seen.
func (p *player) keepLeases(from, to int) error {
	for i := from; i < to; i++ {
		change := p.witness[i]
		if change.Table != "leases" || change.Op == history.Delete {
			continue
		}
		job := jobOf(change)
		if known := cmp.Or(p.old[job], p.now.leases[job]); known != nil && known.id == change.Row["lease_id"] {
			continue
		}
		found, err := p.leased(nil, i)
		if err != nil {
			return err
		}
		p.old[job] = found
	}
	return nil
}

package main

import (
	"cmp"
	"fmt"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

// replay makes the stories of the witness. What only an old primary has seen is not part of
// them, but its leases are kept.
func (r *record) replay() error {
	r.jobs = make(map[string]*story)
	r.index()
	player := &player{
		record: r, now: empty(), old: make(map[string]*lease), played: make(map[history.LSN]uint32),
		changed: make(map[*lease]former), moved: make(map[string]int),
	}
	markOrphans(r.witness)
	r.gaps = gapsOf(r.witness)
	r.undone = make(map[string][]gap)
	for _, change := range r.witness {
		job := jobOf(change)
		if job == "" { // a promotion, or a worker
			continue
		}
		if r.changes++; change.Orphaned {
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
	player.settle(player.committed)
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

// gapsOf finds when nobody looked. Changes of workers do not count: nobody waits for them.
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
		case change.Op != history.Snapshot && !change.Orphaned && jobOf(change) != "":
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
	// committed is when the last transaction was.
	committed history.Nanos
	// changed are the leases that the present transaction has changed, and moved the workers whose
	// alive_until it has, with its line.
	changed map[*lease]former
	moved   map[string]int
}

// play replays the lines from..to of the witness, which are one transaction.
func (p *player) play(from, to int) error {
	first := p.witness[from]
	switch {
	case first.Op == history.Promoted:
		p.settle(p.committed)
		p.generation, p.lsn, p.snapshot = first.Generation, 0, empty()
		clear(p.old)
		clear(p.played)
		return nil
	case first.Op == history.Snapshot:
		into := cmp.Or(p.snapshot, p.now)
		_, err := p.apply(into, from)
		if p.snapshot == nil {
			p.expire(into, first.Committed, false)
		}
		return err
	case first.Generation != p.generation:
		return fmt.Errorf("%s: generation %d follows %d without a promotion", witnessLine(from), first.Generation, p.generation)
	case first.LSN <= p.lsn:
		if p.played[first.LSN] != first.XID {
			return fmt.Errorf("%s: transaction %d follows later ones, and was not there before", witnessLine(from), first.XID)
		}
		return nil // decoded again
	}
	p.settle(first.Committed)
	p.lsn, p.committed, p.played[first.LSN] = first.LSN, first.Committed, first.XID
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
	p.expire(p.now, first.Committed, true)
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
// while nobody looked, before the given time.
func (p *player) settle(until history.Nanos) {
	if p.snapshot == nil {
		return
	}
	p.expire(p.snapshot, until, false)
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
	case "workers":
		return nil, p.worker(t, at)
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

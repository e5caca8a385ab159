package main

import (
	"cmp"
	"fmt"
	"time"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

// tolerance is how long a server may take between two looks at its clock in one statement.
const tolerance = 100 * time.Millisecond

// former is a lease before a transaction that has changed its row; nothing but a line for a new one.
type former struct {
	line string // of the change
	own  history.Nanos
	kept bool
}

// leased is the lease after a change of its row, which was that of the lease before.
func (p *player) leased(last *lease, at int) (*lease, error) {
	change := p.witness[at]
	fence, err1 := change.Row.Int("fence")
	claimed, err2 := change.Row.Time("claimed_at")
	expires, err3 := change.Row.Time("expires_at")
	if err := cmp.Or(err1, err2, err3); err != nil {
		return nil, fmt.Errorf("%s: %w", witnessLine(at), err)
	}
	id, worker, kept := change.Row["lease_id"], change.Row["worker_id"], change.Row["kept"] == "t"
	if change.Op == history.Snapshot {
		// Another primary knows the same leases.
		last = p.now.leases[change.Row["job_id"]]
	}
	if last != nil && last.id == id && last.fence == fence {
		if _, again := p.changed[last]; !again {
			p.changed[last] = former{line: witnessLine(at), own: last.own, kept: last.kept}
		}
		last.worker, last.kept, last.own = worker, kept, expires
		return last, nil
	}
	now := &lease{
		job: change.Row["job_id"], id: id, fence: fence, line: witnessLine(at), committed: change.Committed,
		claimed: claimed, own: expires, expires: expires, kept: kept, orphaned: change.Orphaned, worker: worker,
	}
	if !now.orphaned {
		p.changed[now] = former{line: now.line}
	}
	if last != nil && change.Op == history.Update {
		now.over, last.taken = last, change.Committed
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

// worker makes a change of the row of a worker. What it means for leases waits for the rest of the
// transaction, which may change their rows as well.
func (p *player) worker(t *tables, at int) error {
	change := p.witness[at]
	worker := cmp.Or(change.Row["worker_id"], change.Old["worker_id"])
	if change.Op == history.Delete {
		delete(t.workers, worker)
		p.moved[worker] = at
		return nil
	}
	alive, err := change.Row.Time("alive_until")
	if err != nil {
		return fmt.Errorf("%s: %w", witnessLine(at), err)
	}
	if last, ok := t.workers[worker]; !ok || last != alive {
		t.workers[worker] = alive
		p.moved[worker] = at
	}
	return nil
}

// expire finds out when leases expire after a transaction: those that it has changed, and the kept ones
// of the workers that it has. If it was seen, none of them may have been renewed too late by it.
func (p *player) expire(t *tables, committed history.Nanos, seen bool) {
	for l, was := range p.changed {
		p.expireOne(t, l, was, committed, seen)
	}
	if len(p.moved) > 0 {
		for _, l := range t.leases {
			_, changed := p.changed[l]
			if at, moved := p.moved[l.worker]; moved && l.kept && !changed {
				p.expireOne(t, l, former{line: witnessLine(at), own: l.own, kept: true}, committed, seen)
			}
		}
	}
	clear(p.changed)
	clear(p.moved)
}

func (p *player) expireOne(t *tables, l *lease, was former, committed history.Nanos, seen bool) {
	expires := l.own
	switch alive, known := t.workers[l.worker]; {
	case l.kept && known:
		expires = alive
	case l.kept: // a worker that nobody knows is not alive
		expires = min(l.expires, committed)
	case was.kept && seen && l.own <= committed:
		// It has expired now, or had before: that it is written later does not make it last longer.
		expires = min(l.expires, l.own)
	case !was.kept && l.own == was.own:
		return
	}
	// A renewal counts from when it was made, which for one that is kept is when its worker's was.
	if seen && expires-history.Nanos(p.run.Lease) > l.expires+history.Nanos(tolerance) {
		l.revived = append(l.revived, was.line)
	}
	l.expires = expires
}

//go:build linux

package main

import (
	"path/filepath"
	"strings"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

// time finds out from the witness how long it took to recover: when the leases of killed
// workers were taken, and when each new primary saw the first claim.
func (r *run) time() error {
	type lease struct {
		worker, id, job string
		claimed, ended  history.Nanos
		taken           bool
	}
	held := make(map[string]*lease) // by job
	var leases []*lease
	claims := make(map[int]history.Nanos) // the first of each generation
	err := history.EachLine(filepath.Join(r.dir, history.WitnessFile), func(_ int, c history.Change) error {
		if c.Table != "leases" {
			return nil
		}
		switch c.Op {
		case history.Insert, history.Snapshot:
			l := &lease{worker: c.Row["worker_id"], id: c.Row["lease_id"], claimed: c.Committed, job: c.Row["job_id"]}
			if before := held[l.job]; before != nil && c.Op == history.Snapshot {
				return nil
			}
			held[l.job] = l
			leases = append(leases, l)
			if _, ok := claims[c.Generation]; !ok && c.Op == history.Insert {
				claims[c.Generation] = c.Committed
			}
		case history.Delete:
			if l := held[c.Old["job_id"]]; l != nil {
				l.ended = c.Committed
				delete(held, l.job)
			}
		case history.Update: // a reaper changes the id, a renewal does not
			if l := held[c.Row["job_id"]]; l != nil && l.id != c.Row["lease_id"] {
				l.taken = true
			}
		case history.Promoted:
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.timings.Failovers {
		f := &r.timings.Failovers[i]
		f.FirstAccept, f.FirstClaim = r.firsts[i](), claims[i+1]
	}
	for _, loss := range r.lost {
		for _, l := range leases {
			lost := l.taken && strings.HasPrefix(l.worker, loss.worker+"/") && l.claimed < loss.at && l.ended > loss.at
			if lost && r.undisturbed(loss, l.ended) {
				r.timings.Reclaims = append(r.timings.Reclaims, history.Reclaim{
					Case: loss.kind, SameHost: loss.seen, JobID: l.job, Lost: loss.at, Reclaimed: l.ended,
				})
			}
		}
	}
	r.timings.Drained = r.drained
	return nil
}

// undisturbed reports whether no other fault, but of plugins, was there from the loss until
// then: the database, or those that reclaim, may have been hit.
func (r *run) undisturbed(loss loss, until history.Nanos) bool {
	for _, f := range r.injected {
		if f.Kind != loss.kind && !f.PluginOnly && f.Injected < until && f.Healed > loss.at {
			return false
		}
	}
	return true
}

//go:build linux

package main

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

// How soon the first submission after a failover must be accepted, and the first job claimed.
const (
	firstAcceptWithin = 2 * time.Second
	firstClaimWithin  = 3 * time.Second
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
		f.AcceptDisturbed = disturbers(r.injected, f.Answers, f.FirstAccept, firstAcceptWithin, holdsSubmissions)
		f.ClaimDisturbed = disturbers(r.injected, f.Answers, f.FirstClaim, firstClaimWithin, holdsClaims)
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

// disturbers lists the kinds of the faults that hold something up and were there after the
// new primary answered. A fault that came when it had happened already, or when its time
// was over, is no excuse; nor is the failover itself.
func disturbers(all []history.Fault, answers, happened history.Nanos, within time.Duration, hold func(history.Fault) bool) []string {
	until := answers + history.Nanos(within)
	if happened != 0 {
		until = min(until, happened)
	}
	var kinds []string
	for _, f := range all {
		itself := f.Failover && f.Injected <= answers && f.Healed >= answers
		if hold(f) && !itself && f.Injected < until && f.Healed > answers && !slices.Contains(kinds, f.Kind) {
			kinds = append(kinds, f.Kind)
		}
	}
	return kinds
}

// holdsClaims reports whether workers may claim nothing because of the fault. A schedule only
// has more to claim.
func holdsClaims(f history.Fault) bool { return !f.PluginOnly && f.Kind != "schedule" }

// holdsSubmissions reports whether clients may be held up by the fault: any orchestrator may
// be the one that they ask. Pauses and limits are for workers.
func holdsSubmissions(f history.Fault) bool {
	return holdsClaims(f) && !strings.HasPrefix(f.Kind, "pause-") && !strings.HasPrefix(f.Kind, "limit-")
}

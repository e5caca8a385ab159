package main

import (
	"time"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

// deeds are how much a run did.
type deeds struct {
	jobs, succeeded, faults, kinds, failovers, stale, unknown int
}

func (r *record) did() (d deeds) {
	kinds := make(map[string]bool)
	for _, fault := range r.faults {
		if fault.Error != "" {
			continue
		}
		d.faults++
		kinds[fault.Kind] = true
		if fault.Failover {
			d.failovers++
		}
	}
	d.kinds, d.stale = len(kinds), r.stale()
	for _, call := range r.calls {
		if call.Outcome == history.Unknown {
			d.unknown++
		}
	}
	r.ledger(func(_ string, row history.Row) {
		d.jobs++
		if row["state"] == "succeeded" {
			d.succeeded++
		}
	})
	return d
}

// enough judges whether the run did what it had to do.
func enough(r *record, f *findings) {
	least, did := r.run.Minimums, r.did()
	for _, count := range []struct {
		what      string
		did, must int
	}{
		{"jobs", did.jobs, least.Jobs},
		{"jobs that succeeded", did.succeeded, min(1, least.Jobs)},
		{"faults", did.faults, least.Faults},
		{"kinds of faults", did.kinds, least.Kinds},
		{"stale attempts", did.stale, least.StaleAttempts},
		{"failovers", did.failovers, least.Failovers},
		{"primaries", r.generations, did.failovers + 1},
		{"calls without an answer", did.unknown, least.Unknown},
		{"changes", r.changes, least.Jobs},
		{"reads that can be judged", len(r.reads()), least.Reads},
		{"effects", len(r.effects), min(len(r.run.Recorded), 1)},
		{"orchestrators", r.names(history.Orchestrator), least.Orchestrators},
		{"processes of plugins", r.processesOf(history.Plugin), least.Plugins},
		{"database servers", r.names(history.Database), least.Databases},
	} {
		f.look()
		if count.did < count.must {
			f.add("", nil, "%d %s, and there must be %d", count.did, count.what, count.must)
		}
	}
}

// processesOf counts processes of a kind, and names what is called differently among them.
func (r *record) processesOf(kind history.ProcessKind) (count int) {
	for _, p := range r.processes {
		if p.Kind == kind {
			count++
		}
	}
	return count
}

func (r *record) names(kind history.ProcessKind) int {
	names := make(map[string]bool)
	for _, p := range r.processes {
		if p.Kind == kind {
			names[p.Name] = true
		}
	}
	return len(names)
}

// isolation is V11.
func isolation(r *record, f *findings) {
	for i, p := range r.processes {
		if p.Kind != history.Orchestrator {
			continue
		}
		f.look()
		if p.Ended == 0 || p.Wanted {
			continue
		}
		evidence := []string{processLine(i)}
		during := "no fault of a plugin"
		for j, fault := range r.faults {
			if fault.PluginOnly && fault.Error == "" && fault.Injected <= p.Ended && fault.Healed+slack >= p.Ended {
				during = fault.Kind
				evidence = append(evidence, faultLine(j))
			}
		}
		f.add("", evidence, "%s ended by itself (exit code %d, signal %q) during %s", p.Name, p.Exit, p.Signal, during)
	}
}

// liveness is V13.
func liveness(r *record, f *findings) {
	bounds, evidence := r.run.Bounds, []string{history.TimingsFile}
	var here, elsewhere []time.Duration
	for _, reclaim := range r.timings.Reclaims {
		f.look()
		where := &elsewhere
		if reclaim.SameHost {
			where = &here
		}
		*where = append(*where, time.Duration(reclaim.Reclaimed-reclaim.Lost))
	}
	for _, reclaims := range []struct {
		where string
		took  []time.Duration
		bound time.Duration
	}{{"on the same host", here, bounds.ReclaimSameHost}, {"elsewhere", elsewhere, bounds.ReclaimElsewhere}} {
		if p99 := history.Percentile99(reclaims.took); reclaims.bound > 0 && p99 > reclaims.bound {
			f.add("", evidence, "a reclaim %s takes %s (99th percentile of %d), and may take %s", reclaims.where, p99, len(reclaims.took), reclaims.bound)
		}
	}
	for i, failover := range r.timings.Failovers {
		f.look()
		within := func(what string, at history.Nanos, bound time.Duration, disturbed []string) {
			switch took := time.Duration(at - failover.Answers); {
			case bound == 0 || len(disturbed) > 0:
			case at == 0:
				f.add("", evidence, "there was %s after failover %d (%s)", what, i+1, failover.Kind)
			case took > bound:
				f.add("", evidence, "there was %s for %s after failover %d (%s), and there may be for %s", what, took, i+1, failover.Kind, bound)
			}
		}
		within("no acknowledged submission", failover.FirstAccept, bounds.FirstAccept, failover.AcceptDisturbed)
		within("no claim", failover.FirstClaim, bounds.FirstClaim, failover.ClaimDisturbed)
	}
	f.look()
	switch drained := r.timings.Drained; {
	case drained < 0:
		f.add("", evidence, "the backlog did not drain: nothing moved for %s, or without end", r.run.Grace)
	case bounds.Drained > 0 && drained > bounds.Drained:
		f.add("", evidence, "the backlog drained in %s, and may take %s", drained, bounds.Drained)
	}
}

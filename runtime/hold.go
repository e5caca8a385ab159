package runtime

import (
	"context"
	"log/slog"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// hold parks the claimed jobs that may not start: a limit or a pause came after they were
// queued. It returns the others, and those that could not be parked.
func (p *path) hold(ctx context.Context, claimed []job.Claimed) (others, unparked []job.Claimed) {
	rules := p.jobs.Rules()
	if !anyHeld(rules, claimed) {
		return claimed, nil
	}
	var held []job.Claimed
	var batch []job.Parking
	for i := range claimed {
		one := &claimed[i]
		next, stopped := rules.Held(one.Type, one.Tenant, one.Gates())
		if !stopped {
			others = append(others, *one)
			continue
		}
		held, batch = append(held, *one), append(batch, job.Parking{Lease: one.Lease, Gates: next})
	}
	results, err := p.store.Park(ctx, batch)
	if err != nil {
		p.cfg.Log.Warn("claimed jobs that may not start could not be parked; releasing them", slog.Int("jobs", len(held)), slog.Any("error", err))
		return others, held
	}
	for i, result := range results {
		if result != job.Settled && result != job.Lost {
			unparked = append(unparked, held[i]) // such as one whose cancel was requested
		}
	}
	p.jobs.GatesChanged()
	return others, unparked
}

// anyHeld reports whether one of the claimed jobs may not start.
func anyHeld(rules *job.Rules, claimed []job.Claimed) bool {
	for i := range claimed {
		one := &claimed[i]
		if _, held := rules.Held(one.Type, one.Tenant, one.Gates()); held {
			return true
		}
	}
	return false
}

//go:build linux

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-jobs/holdfast/test/chaos/faults"
	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

const (
	// extension is how many times its duration a run may go on for what is missing.
	extension = 3
	// portion is how long it goes on before it looks again.
	portion = 10 * time.Second
)

// minimums are how much is expected of the run.
func (r *run) minimums() history.Minimums {
	least := r.leastDone()
	least.Orchestrators, least.Plugins, least.Databases = len(r.scene.All()), len(r.scene.Plugins), 2
	return least
}

func (r *run) leastDone() history.Minimums {
	switch {
	case r.aimed > 0:
		return history.Minimums{Jobs: 100, Faults: 2 * r.aimed, Kinds: 2, Failovers: 2 * r.aimed, Unknown: 1}
	case r.alone:
		return history.Minimums{Jobs: 100, Faults: 6, Kinds: 4, StaleAttempts: 1, Failovers: 1, Unknown: 1, Reads: 10}
	case r.short || r.only != "":
		return history.Minimums{Jobs: 50, Faults: 1, Kinds: 1}
	}
	return history.Minimums{Jobs: 5000, Faults: 40, Kinds: 10, StaleAttempts: 1, Failovers: 1, Unknown: 1, Reads: 10}
}

// lack is what a run has not done enough of.
type lack struct {
	what      string
	did, must int
	// cure are kinds of which each injection helps; nil if any fault does, or only time.
	cure  []faults.Kind
	waits bool
}

// lacks compares the run with what is expected of it, as the checker will.
func (r *run) lacks(ctx context.Context) []lack {
	least := r.minimums()
	jobs, err := r.count(ctx, "select count(*) from jobs")
	if err != nil {
		r.log.Warn("no count of jobs", "error", err)
	}
	kinds, done := make(map[string]bool), 0
	r.mu.Lock()
	for _, f := range r.injected {
		if f.Error == "" {
			done++
			kinds[f.Kind] = true
		}
	}
	stale, failed := r.stale, failovers(r.injected)
	r.mu.Unlock()
	var found []lack
	for _, one := range []lack{
		{what: "stale attempts", did: stale, must: least.StaleAttempts, cure: faults.ForStaleAttempts()},
		{what: "failovers", did: failed, must: least.Failovers, cure: faults.ForFailovers()},
		{what: "calls without an answer", did: int(r.load.Unanswered()), must: least.Unknown, cure: faults.ForLostAnswers()},
		{what: "kinds of faults", did: len(kinds), must: least.Kinds},
		{what: "faults", did: done, must: least.Faults},
		{what: "jobs", did: jobs, must: least.Jobs, waits: true},
	} {
		if one.did < one.must {
			found = append(found, one)
		}
	}
	return found
}

// makeUp goes on until nothing is lacking, for a limited time. On a slow machine less
// happens in the same time, but no other things.
func (r *run) makeUp(ctx context.Context) {
	deadline := time.Now().Add(extension * r.duration)
	for ctx.Err() == nil && time.Now().Before(deadline) {
		found := r.lacks(ctx)
		if len(found) == 0 {
			return
		}
		var words []string
		for _, one := range found {
			words = append(words, fmt.Sprintf("%d of %d %s", one.did, one.must, one.what))
		}
		fmt.Println("goes on, with", strings.Join(words, ", "))
		switch first := found[0]; {
		case first.cure != nil:
			r.inflict(ctx, ctx, r.make(first.cure[r.random.IntN(len(first.cure))]))
		case first.waits:
			wait(ctx, portion)
		default:
			until, cancel := context.WithTimeout(ctx, portion)
			r.shuffle(ctx, until)
			cancel()
		}
	}
}

// wait waits, or returns when ctx ends.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

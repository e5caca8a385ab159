//go:build linux

package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

// usage is what each process uses, and how many connections the database has.
func (r *run) usage(ctx context.Context) ([]history.Usage, error) {
	connections, err := r.count(ctx, "select count(*) from pg_stat_activity where application_name like 'holdfast%'")
	if err != nil {
		return nil, err
	}
	return r.census.Usage(ctx, connections)
}

// baseline is what is used before the load.
func (r *run) baseline(ctx context.Context) error {
	for {
		used, err := r.usage(ctx)
		if r.leaks.Baseline = used; err == nil {
			return nil
		}
		r.log.Warn("nobody knows what is used", "error", err)
		if wait(ctx, time.Second); ctx.Err() != nil {
			return errors.Join(ctx.Err(), err)
		}
	}
}

// usageAtRest looks until nothing is used any more that need not be: processes and
// connections take a while to end.
func (r *run) usageAtRest(ctx context.Context) []history.Usage {
	for deadline := time.Now().Add(r.grace); ; wait(ctx, time.Second) {
		now, err := r.usage(ctx)
		if err != nil {
			r.log.Warn("nobody knows what is used", "error", err)
		}
		if ctx.Err() != nil || time.Now().After(deadline) || err == nil && !r.grown(now) {
			return now
		}
	}
}

// growth is how much more than at the baseline each process may use. Pools of connections
// are full after a while.
var growth = history.Usage{Descendants: 12, Files: 30, Goroutines: 60, Connections: 4 * connections}

// grown reports whether something uses more than it may.
func (r *run) grown(now []history.Usage) bool {
	return slices.ContainsFunc(now, func(n history.Usage) bool {
		return slices.ContainsFunc(r.leaks.Baseline, func(b history.Usage) bool {
			return b.Name == n.Name && (n.Descendants > b.Descendants+growth.Descendants || n.Files > b.Files+growth.Files ||
				n.Goroutines > b.Goroutines+growth.Goroutines || n.Connections > b.Connections+growth.Connections)
		})
	})
}

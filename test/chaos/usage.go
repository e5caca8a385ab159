//go:build linux

package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-jobs/holdfast/test/chaos/census"
	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

func (r *run) usage(ctx context.Context) ([]history.Usage, error) {
	sessions, err := r.sessions(ctx)
	if err != nil {
		return nil, err
	}
	return r.census.Usage(ctx, sessions)
}

// sessions counts those that the orchestrators have. Behind a pooler, the server's outlive them:
// those of the pooler count.
func (r *run) sessions(ctx context.Context) (int, error) {
	if r.pooled {
		return r.cluster.PoolerClients(ctx)
	}
	return r.count(ctx, "select count(*) from pg_stat_activity where application_name like 'holdfast%'")
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

// growth is how much more than at the baseline each process may use.
var growth = history.Usage{Descendants: 12, Files: 30, Goroutines: 60}

// grown reports whether something uses more than it may, or is not there.
func (r *run) grown(now []history.Usage) bool {
	for _, before := range r.leaks.Baseline {
		at := slices.IndexFunc(now, func(u history.Usage) bool { return u.Name == before.Name })
		if at < 0 {
			return true
		}
	}
	grown := slices.ContainsFunc(now, func(n history.Usage) bool {
		return slices.ContainsFunc(r.leaks.Baseline, func(b history.Usage) bool {
			return b.Name == n.Name && (n.Descendants > b.Descendants+growth.Descendants || n.Files > b.Files+growth.Files ||
				n.Goroutines > b.Goroutines+growth.Goroutines)
		})
	})
	sessions, pooled := census.Connections(now)
	return grown || sessions > pooled
}

package runtime

import (
	"slices"
	"strings"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// claimPlan is what one claim is for: jobs of some types of a pool. A type with a
// bound of its own has a claim of its own, which takes no more jobs than there is room
// for. Any more would wait, and other jobs would wait behind them.
type claimPlan struct {
	pool  job.Pool
	types []string
	// bound is the one type of a plan for a bounded type; empty for all others.
	bound string
	// room is how many more attempts of that type there may be.
	room int
}

// key names the plan among those of all pools.
func (p claimPlan) key() string {
	if p.bound == "" {
		return p.pool.Plugin
	}
	return p.pool.Plugin + "\n" + p.bound
}

// plansOf makes plans of pools, in another order each turn, without the types of a plugin
// that are stopped. Waiting are the attempts
// of bounded types that are queued, as they were before the pools were asked: one that
// was started meanwhile is counted twice, not missed.
func plansOf(pools []job.Pool, waiting map[jobTypeOf]int, turn int, stopped func(plugin, jobType string) bool) []claimPlan {
	plans := make([]claimPlan, 0, len(pools))
	for _, pool := range pools {
		isStopped := func(jobType string) bool { return stopped(pool.Plugin, jobType) }
		types := pool.Types
		if slices.ContainsFunc(types, isStopped) {
			types = slices.DeleteFunc(slices.Clone(types), isStopped)
		}
		if len(types) == 0 {
			continue
		}
		if len(pool.Room) == 0 {
			plans = append(plans, claimPlan{pool: pool, types: types})
			continue
		}
		isBounded := func(jobType string) bool { _, bounded := pool.Room[jobType]; return bounded }
		own := make([]claimPlan, 0, len(pool.Room)+1)
		for _, jobType := range types {
			if isBounded(jobType) {
				room := pool.Room[jobType] - waiting[jobTypeOf{pool.Plugin, jobType}]
				own = append(own, claimPlan{pool: pool, types: []string{jobType}, bound: jobType, room: room})
			}
		}
		if others := slices.DeleteFunc(slices.Clone(types), isBounded); len(others) > 0 {
			own = append(own, claimPlan{pool: pool, types: others})
		}
		turn := turn % len(own)
		plans = append(append(plans, own[turn:]...), own[:turn]...)
	}
	return plans
}

// identity differs between a pool and the same plugin's pool before it was replaced.
func identity(pool job.Pool) string {
	return pool.Version + "\n" + strings.Join(pool.Types, "\n")
}

package runtime

import (
	"slices"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// share is what one claim is for: jobs of some types of a pool. A type with a
// bound of its own is claimed by itself, and no more of it than there is room
// for: what is claimed in excess would wait, and others behind it.
type share struct {
	pool  job.Pool
	types []string
	// bound is the one type of a share that is bounded; empty for all others.
	bound string
	// room is how many attempts of that type there may be more.
	room int
}

// key names the share among those of all pools.
func (s share) key() string {
	if s.bound == "" {
		return s.pool.Plugin
	}
	return s.pool.Plugin + "\n" + s.bound
}

// sharesOf cuts pools into shares, another one first each turn. Waiting are the
// attempts of bounded types that have lined up, as they were before the pools
// were asked: one that has been started meanwhile is counted twice, not missed.
func sharesOf(pools []job.Pool, waiting map[typeOfPlugin]int, turn int) []share {
	shares := make([]share, 0, len(pools))
	for _, pool := range pools {
		if len(pool.Room) == 0 {
			shares = append(shares, share{pool: pool, types: pool.Types})
			continue
		}
		isBounded := func(jobType string) bool { _, bounded := pool.Room[jobType]; return bounded }
		cut := make([]share, 0, len(pool.Room)+1)
		for _, jobType := range pool.Types {
			if isBounded(jobType) {
				room := pool.Room[jobType] - waiting[typeOfPlugin{pool.Plugin, jobType}]
				cut = append(cut, share{pool: pool, types: []string{jobType}, bound: jobType, room: room})
			}
		}
		if others := slices.DeleteFunc(slices.Clone(pool.Types), isBounded); len(others) > 0 {
			cut = append(cut, share{pool: pool, types: others})
		}
		turn := turn % len(cut)
		shares = append(append(shares, cut[turn:]...), cut[:turn]...)
	}
	return shares
}

// typeOfPlugin is a job type that a plugin serves.
type typeOfPlugin struct{ plugin, jobType string }

// waitingOf counts the attempts of each job type that have lined up for the
// plugins, but for those that will run alone.
func (l *lineup) waitingOf(plugins map[string]bool) map[typeOfPlugin]int {
	if len(plugins) == 0 {
		return nil
	}
	waiting := make(map[typeOfPlugin]int)
	l.mu.Lock()
	defer l.mu.Unlock()
	for plugin := range plugins {
		if in := l.lanes[plugin]; in != nil {
			for _, a := range in.shared.queue {
				waiting[typeOfPlugin{plugin, a.claimed.Type}]++
			}
		}
	}
	return waiting
}

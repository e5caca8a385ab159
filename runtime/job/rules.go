package job

import (
	"cmp"
	"maps"
	"slices"
)

// Of names what a pause is of, such as "type SEND_EMAIL", or "all".
func (s PauseScope) Of(name string) string {
	if s == PauseAll {
		return string(s)
	}
	return string(s) + " " + name
}

// Limits lists the limits by scope and name.
func (r *Rules) Limits() []Limit {
	if r == nil {
		return nil
	}
	return flattened(r.limits)
}

// Pauses lists the pauses by scope and name, and not the drains of workers.
func (r *Rules) Pauses() []Pause {
	return slices.DeleteFunc(r.allPauses(), func(p Pause) bool { return p.Scope == PauseWorker })
}

func flattened[S cmp.Ordered, T any](by map[S]map[string]T) (all []T) {
	for _, scope := range slices.Sorted(maps.Keys(by)) {
		for _, name := range slices.Sorted(maps.Keys(by[scope])) {
			all = append(all, by[scope][name])
		}
	}
	return all
}

// Equal reports whether two have the same limits and pauses.
func (r *Rules) Equal(other *Rules) bool {
	return slices.EqualFunc(r.Limits(), other.Limits(), equalLimits) && slices.Equal(r.allPauses(), other.allPauses())
}

func (r *Rules) allPauses() []Pause {
	if r == nil {
		return nil
	}
	return flattened(r.pauses)
}

func equalLimits(a, b Limit) bool {
	same := equalValues(a.Concurrency, b.Concurrency) && equalValues(a.Rate, b.Rate)
	a.Concurrency, a.Rate, b.Concurrency, b.Rate = nil, nil, nil, nil
	return same && a == b
}

func equalValues[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// Draining reports whether the worker must stop taking jobs.
func (r *Rules) Draining(worker string) bool {
	_, asked := r.Pause(PauseWorker, worker)
	return asked
}

// Stopped returns the pause that keeps jobs of the type from being claimed for the plugin:
// that of everything, of the plugin or of the type.
func (r *Rules) Stopped(plugin, jobType string) (Pause, bool) {
	if r == nil || len(r.pauses) == 0 {
		return Pause{}, false
	}
	if pause, paused := r.Pause(PauseAll, ""); paused {
		return pause, true
	}
	if pause, paused := r.Pause(PausePlugin, plugin); paused {
		return pause, true
	}
	return r.Pause(PauseType, jobType)
}

// Drained reports whether a running attempt must be given back, because a pause asks for
// that.
func (r *Rules) Drained(plugin, jobType, tenant string) bool {
	if r == nil || len(r.pauses) == 0 {
		return false
	}
	for scope, name := range map[PauseScope]string{PauseAll: "", PausePlugin: plugin, PauseType: jobType, PauseTenant: tenant} {
		if pause, paused := r.Pause(scope, name); paused && pause.Drain {
			return true
		}
	}
	return false
}

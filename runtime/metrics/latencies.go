package metrics

import (
	"cmp"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// maxLatencyTypes is how many job types have latencies of their own at a time, the busiest;
// all others share those of "other".
const maxLatencyTypes = 50

// latencies count how long the jobs of a type waited and ran since they were last taken.
type latencies struct {
	waits, runs [job.LatencyBuckets]atomic.Int64
}

// TakeLatencies returns what jobs have waited and run since the last call, by type, and first
// of all types together. It returns nil if there was nothing.
func (m *Metrics) TakeLatencies() []job.TypeLatencies {
	types := slices.Collect(maps.Values(*m.types.Load()))
	var taken []job.TypeLatencies
	var all, other job.TypeLatencies
	for _, t := range append(types, m.other) {
		one := job.TypeLatencies{Type: t.name, Waits: take(&t.latencies.waits), Runs: take(&t.latencies.runs)}
		if len(one.Waits) == 0 && len(one.Runs) == 0 {
			continue
		}
		all.Waits.Add(one.Waits)
		all.Runs.Add(one.Runs)
		if t.name == otherType {
			other.Waits.Add(one.Waits)
			other.Runs.Add(one.Runs)
			continue
		}
		taken = append(taken, one)
	}
	if len(taken) > maxLatencyTypes {
		slices.SortFunc(taken, func(a, b job.TypeLatencies) int {
			return cmp.Or(cmp.Compare(b.Waits.Count()+b.Runs.Count(), a.Waits.Count()+a.Runs.Count()), cmp.Compare(a.Type, b.Type))
		})
		for _, one := range taken[maxLatencyTypes:] {
			other.Waits.Add(one.Waits)
			other.Runs.Add(one.Runs)
		}
		taken = taken[:maxLatencyTypes]
	}
	if len(other.Waits) > 0 || len(other.Runs) > 0 {
		other.Type = otherType
		taken = append(taken, other)
	}
	if len(taken) == 0 {
		return nil
	}
	return append([]job.TypeLatencies{all}, taken...)
}

// take empties the buckets, and returns them without the empty ones at the end.
func take(buckets *[job.LatencyBuckets]atomic.Int64) job.Latencies {
	counts := make(job.Latencies, job.LatencyBuckets)
	used := 0
	for i := range buckets {
		if counts[i] = buckets[i].Swap(0); counts[i] > 0 {
			used = i + 1
		}
	}
	return counts[:used]
}

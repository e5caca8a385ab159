package job

import (
	"math"
	"slices"
	"time"
)

// LatencyBuckets is how many buckets a histogram of waits or runs has.
const LatencyBuckets = 56

// latencyBounds are the upper bounds of the buckets but the last, which has none: from a
// millisecond to 37 hours, each the square root of two times the one before. So a percentile
// is off by less than half.
var latencyBounds = func() (bounds [LatencyBuckets - 1]time.Duration) {
	for i := range bounds {
		bounds[i] = time.Duration(float64(time.Millisecond) * math.Pow(2, float64(i)/2))
	}
	return bounds
}()

// LatencyBucket is the bucket that a duration falls into, counted from 0.
func LatencyBucket(d time.Duration) int {
	i, _ := slices.BinarySearch(latencyBounds[:], d)
	return i
}

// LatencyBounds are the least duration of a bucket, which is not in it, and the longest. Those
// of the last bucket are equal.
func LatencyBounds(bucket int) (above, upTo time.Duration) {
	if bucket > 0 {
		above = latencyBounds[bucket-1]
	}
	return above, latencyBounds[min(bucket, len(latencyBounds)-1)]
}

// Latencies count durations, by their bucket. Buckets at the end are left out if they are
// empty.
type Latencies []int64

// Add adds the counts of another.
func (l *Latencies) Add(other Latencies) {
	for len(*l) < len(other) {
		*l = append(*l, 0)
	}
	for i, n := range other {
		(*l)[i] += n
	}
}

// Count is how many durations there are.
func (l Latencies) Count() (n int64) {
	for _, in := range l {
		n += in
	}
	return n
}

// Percentile is the duration that the given share of all do not exceed, estimated within its
// bucket as if the durations in it were spread evenly on a logarithmic scale. It is 0 without
// any.
func (l Latencies) Percentile(share float64) time.Duration {
	rank := max(int64(math.Ceil(share*float64(l.Count()))), 1)
	for i, n := range l {
		if rank > n {
			rank -= n
			continue
		}
		above, upTo := LatencyBounds(i)
		part := float64(rank) / float64(n)
		if i == 0 {
			return time.Duration(part * float64(upTo))
		}
		return time.Duration(float64(above) * math.Pow(float64(upTo)/float64(above), part))
	}
	return 0
}

// TypeLatencies are how long jobs of a type waited until they were claimed, and how long their
// handlers ran. The empty type stands for all types together.
type TypeLatencies struct {
	Type  string
	Waits Latencies
	Runs  Latencies
}

// LatencySlot is how long the slots are for which latencies and tallies are kept at first.
const LatencySlot = 10 * time.Second

package job_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestEveryDurationFallsIntoTheBucketWithItsBounds(t *testing.T) {
	for d := time.Duration(1); d < 60*time.Hour; d = d*11/10 + 1 {
		bucket := job.LatencyBucket(d)
		require.Less(t, bucket, job.LatencyBuckets)
		above, upTo := job.LatencyBounds(bucket)
		require.Greater(t, d, above)
		if bucket < job.LatencyBuckets-1 {
			require.LessOrEqual(t, d, upTo)
		}
	}
	require.Zero(t, job.LatencyBucket(0))
	require.Zero(t, job.LatencyBucket(-time.Second), "the clocks of two servers")
	require.Equal(t, job.LatencyBuckets-1, job.LatencyBucket(1000*time.Hour))
}

func TestAPercentileIsInTheBucketOfTheTrueOne(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		all := make([]time.Duration, 1+random.IntN(500))
		var counts job.Latencies = make([]int64, job.LatencyBuckets)
		for i := range all {
			all[i] = time.Duration(random.ExpFloat64() * float64(3*time.Second))
			counts[job.LatencyBucket(all[i])]++
		}
		slices.Sort(all)
		for _, share := range []float64{0.5, 0.95, 0.99, 1} {
			truth := all[max(int(float64(len(all))*share+0.999999)-1, 0)]
			above, upTo := job.LatencyBounds(job.LatencyBucket(truth))
			got := counts.Percentile(share)
			require.GreaterOrEqual(t, got, above)
			require.LessOrEqual(t, got, upTo)
		}
	}
	require.Zero(t, job.Latencies(nil).Percentile(0.5))
}

func TestLatenciesAddUpWhateverTheirLengths(t *testing.T) {
	sum := job.Latencies{1}
	sum.Add(job.Latencies{1, 2, 3})
	sum.Add(job.Latencies{0, 1})
	require.Equal(t, job.Latencies{2, 3, 3}, sum)
	require.EqualValues(t, 8, sum.Count())
}

package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// BenchmarkLife takes jobs through their whole life, in batches: submitted,
// claimed, settled. WAL bytes hold across machines better than rates do.
func BenchmarkLife(b *testing.B) {
	for _, size := range []int{1, 100, 500} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			s := open(b)
			written := func() int64 { return ask[int64](b, s, "select pg_current_wal_insert_lsn() - '0/0'::pg_lsn") }
			before := written()
			jobs := 0
			b.ResetTimer()
			for jobs < b.N {
				for _, done := range s.Submit(b.Context(), submissions(b, size)) {
					require.NoError(b, done.Err)
				}
				claimed, err := s.Claim(b.Context(), worker, []string{jobType}, size, time.Minute)
				require.NoError(b, err)
				require.Len(b, claimed, size)
				batch := make([]job.Settlement, size)
				for i, c := range claimed {
					batch[i] = as(c, job.Success)
				}
				_, err = s.Settle(b.Context(), batch)
				require.NoError(b, err)
				jobs += size
			}
			b.StopTimer()
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(jobs), "µs/job")
			b.ReportMetric(float64(written()-before)/float64(jobs), "WAL-B/job")
		})
	}
}

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

// BenchmarkMetrics asks for the figures of ledgers of which more and more is
// history, with the same number of jobs waiting.
func BenchmarkMetrics(b *testing.B) {
	for _, finished := range []int{10_000, 10_000_000} {
		b.Run(fmt.Sprintf("finished=%d", finished), func(b *testing.B) {
			s := open(b)
			fill(b, s, job.Queued, 100_000, "WAITING")
			for left := finished; left > 0; left -= 200_000 { // within the statement timeout
				fillHistory(b, s, finished-left, min(left, 200_000))
			}
			exec(b, s, "insert into tally_totals values ('DONE', 'succeeded', $1, 1)", finished)
			for b.Loop() {
				m, err := s.Metrics(b.Context(), 5*time.Minute)
				require.NoError(b, err)
				require.EqualValues(b, finished, m.Counts[job.Succeeded])
			}
		})
	}
}

// fillHistory puts jobs that have succeeded straight into the ledger.
func fillHistory(b *testing.B, s *Store, after, n int) {
	b.Helper()
	tx, err := s.work.Begin(b.Context())
	require.NoError(b, err)
	_, err = tx.Exec(b.Context(), "set local session_replication_role = replica") // no trigger refuses them
	require.NoError(b, err)
	_, err = tx.Exec(b.Context(), `
		insert into jobs (
			job_id, tenant, job_type, priority, request_hash, payload, tags, trace_parent, trace_state,
			max_attempts, timeout, state, run_at, attempt, fence, worker_id, started_at, finished_at)
		select ('00000000-0000-7000-8000-' || lpad(to_hex($2::bigint + i), 12, '0'))::uuid, 'default', 'DONE', 0, '', '{}', '{}', '', '',
			4, '30 seconds', 'succeeded', now(), 1, 1, 'w', now(), now()
		from generate_series(1, $1::integer) i`, n, after)
	require.NoError(b, err)
	require.NoError(b, tx.Commit(b.Context()))
}

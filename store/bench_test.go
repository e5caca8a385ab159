package store

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// BenchmarkLife takes batches of jobs through their whole life: submit, claim, settle.
// WAL bytes compare across machines better than rates.
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
					batch[i].Began.Known = true
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

// BenchmarkMetrics measures Metrics on ledgers with more and more ended jobs and the
// same number of waiting ones.
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
				require.EqualValues(b, finished, m.StatusCounts[job.Succeeded])
			}
		})
	}
}

// BenchmarkWaiting measures Metrics and Queues with a million waiting jobs, queued or
// scheduled.
func BenchmarkWaiting(b *testing.B) {
	for _, state := range []job.State{job.Queued, job.Created, job.Retry} {
		s := open(b)
		fillWaiting(b, s, state, 1_000_000)
		b.Run(fmt.Sprintf("%s/metrics", state), func(b *testing.B) {
			for b.Loop() {
				_, err := s.Metrics(b.Context(), 5*time.Minute)
				require.NoError(b, err)
			}
		})
		b.Run(fmt.Sprintf("%s/queues", state), func(b *testing.B) {
			for b.Loop() {
				_, err := s.Queues(b.Context())
				require.NoError(b, err)
			}
		})
	}
}

// BenchmarkAudit compares the lists with the ledger for a million jobs, all waiting or
// all done.
func BenchmarkAudit(b *testing.B) {
	for _, state := range []job.State{job.Queued, job.Retry, job.Succeeded} {
		s := open(b)
		if state == job.Succeeded {
			fillHistory(b, s, 0, 1_000_000)
		} else {
			fillWaiting(b, s, state, 1_000_000)
		}
		b.Run(string(state), func(b *testing.B) {
			for b.Loop() {
				found, err := audit(b.Context(), s, 1)
				require.NoError(b, err)
				require.Empty(b, found)
			}
		})
	}
}

// fillWaiting inserts n jobs of many types directly into the tables.
func fillWaiting(b *testing.B, s *Store, state job.State, n int) {
	b.Helper()
	for kind := range n / 100_000 { // within the statement timeout
		fill(b, s, state, 100_000, fmt.Sprintf("WAITING_%d", kind))
	}
	exec(b, s, "vacuum analyze jobs, ready, timers")
}

// fillHistory inserts jobs that have succeeded directly into the ledger.
func fillHistory(b *testing.B, s *Store, after, n int) {
	b.Helper()
	tx, err := s.db.Worker.Begin(b.Context())
	require.NoError(b, err)
	_, err = tx.Exec(b.Context(), "set local session_replication_role = replica") // so that no trigger refuses them
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

// BenchmarkVerbs measures what submitting and settling cost the database, one by one
// and in large batches. On a busy machine, processor time and WAL bytes compare better
// than rates.
func BenchmarkVerbs(b *testing.B) {
	for _, size := range []int{1, 500} {
		b.Run(fmt.Sprintf("submit/batch=%d", size), func(b *testing.B) {
			s := open(b)
			for _, done := range s.Submit(b.Context(), submissions(b, size)) { // plans are made once
				require.NoError(b, done.Err)
			}
			batches := make([][]job.Submission, 0, b.N/size+1)
			for len(batches)*size < b.N {
				batches = append(batches, submissions(b, size))
			}
			measured(b, s, len(batches)*size, func() {
				for _, batch := range batches {
					for _, done := range s.Submit(b.Context(), batch) {
						require.NoError(b, done.Err)
					}
				}
			})
		})
		b.Run(fmt.Sprintf("settle/batch=%d", size), func(b *testing.B) {
			s := open(b)
			var batches [][]job.Settlement
			for len(batches)*size < b.N+size {
				submit(b, s, submissions(b, size)...)
				batches = append(batches, claimedBatch(b, s, size))
			}
			_, err := s.Settle(b.Context(), batches[0])
			require.NoError(b, err)
			measured(b, s, (len(batches)-1)*size, func() {
				for _, batch := range batches[1:] {
					_, err := s.Settle(b.Context(), batch)
					require.NoError(b, err)
				}
			})
		})
	}
}

// BenchmarkClaim measures what claiming costs the database, by how many types the worker serves
// and how many of them have jobs.
func BenchmarkClaim(b *testing.B) {
	for _, size := range []int{1, 500} {
		for _, kinds := range []struct{ served, waiting int }{{1, 1}, {5, 1}, {5, 5}} {
			b.Run(fmt.Sprintf("batch=%d/types=%d/waiting=%d", size, kinds.served, kinds.waiting), func(b *testing.B) {
				s := open(b)
				types := make([]string, kinds.served)
				for i := range types {
					types[i] = fmt.Sprintf("%s_%d", jobType, i)
				}
				rounds := b.N/size + 1 // one to make the plans
				for left := rounds * size; left > 0; left -= 500 {
					batch := submissions(b, min(left, 500))
					for i := range batch {
						batch[i].Type = types[i%kinds.waiting]
					}
					submit(b, s, batch...)
				}
				claim := func() {
					claimed, err := s.Claim(b.Context(), worker, types, size, time.Hour)
					require.NoError(b, err)
					require.Len(b, claimed, size)
				}
				claim()
				measured(b, s, (rounds-1)*size, func() {
					for range rounds - 1 {
						claim()
					}
				})
			})
		}
	}
}

func claimedBatch(b *testing.B, s *Store, size int) []job.Settlement {
	b.Helper()
	claimed, err := s.Claim(b.Context(), worker, []string{jobType}, size, time.Hour)
	require.NoError(b, err)
	require.Len(b, claimed, size)
	batch := make([]job.Settlement, size)
	for i, c := range claimed {
		batch[i] = as(c, job.Success)
		batch[i].Began.Known = true
	}
	return batch
}

// measured reports what f costs for each of n jobs.
func measured(b *testing.B, s *Store, n int, f func()) {
	b.Helper()
	wal := func() int64 { return ask[int64](b, s, "select pg_current_wal_insert_lsn() - '0/0'::pg_lsn") }
	walBefore, busyBefore := wal(), busy(b, s)
	b.ResetTimer()
	f()
	b.StopTimer()
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "jobs/s")
	b.ReportMetric(float64((busy(b, s)-busyBefore).Nanoseconds())/1000/float64(n), "PostgreSQL-µs/job")
	b.ReportMetric(float64(wal()-walBefore)/float64(n), "WAL-B/job")
}

// busy is the processor time of the server's processes for the store's database; zero
// if unknown.
func busy(b *testing.B, s *Store) time.Duration {
	b.Helper()
	rows, err := s.db.Worker.Query(b.Context(), "select pid from pg_stat_activity where datname = current_database() and backend_type = 'client backend'")
	require.NoError(b, err)
	defer rows.Close()
	var total time.Duration
	for rows.Next() {
		var pid int
		require.NoError(b, rows.Scan(&pid))
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
		if err != nil {
			continue
		}
		ran, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
		require.NoError(b, err)
		total += time.Duration(ran)
	}
	require.NoError(b, rows.Err())
	return total
}

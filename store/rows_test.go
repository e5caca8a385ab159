package store

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// fill inserts n consistent jobs of a type in the given state directly into the
// tables, which is faster than the verbs.
func fill(t testing.TB, s *Store, state job.State, n int, kind string) {
	t.Helper()
	final := state.Final()
	exec(t, s, `
		with made as (
			insert into jobs (
				job_id, tenant, job_type, priority, request_hash, payload, tags, trace_parent, trace_state,
				max_attempts, timeout, state, run_at, attempt, fence, worker_id, started_at, created_at)
			select gen_random_uuid(), 'default', $2, i % 3, ''::bytea, '{}', '{}', '', '', 4, '30 seconds',
				case when $1 = 'created' then 'created' else 'queued' end::job_state,
				now() - interval '1 hour' + i * interval '1 millisecond', 0, 0, null, null, now() - interval '1 hour'
			from generate_series(1, $3) i
			returning job_id, job_type, priority, run_at
		), queued as (
			insert into ready select job_id, job_type, -priority, run_at from made where $1 = 'queued'
		), scheduled as (
			insert into timers (job_id, run_at, job_type, state, attempt)
			select job_id, run_at, job_type, $1::text::job_state, case when $1 = 'retry' then 1 else 0 end
			from made where $1 in ('created', 'retry')
		), dead as (
			insert into dead_letters select job_id, now() from made where $1 = 'dead'
		)
		insert into leases
		select job_id, gen_random_uuid(), 1, 'filler', now(), now() + interval '1 hour', false from made where $1 = 'running'`,
		string(state), kind, n)
	if state == job.Created || state == job.Queued || state == job.Running {
		return
	}
	exec(t, s, `update jobs set state = $2::text::job_state, fence = 1, attempt = 1, worker_id = 'filler', started_at = now(),
		finished_at = case when $3 then now() end where job_type = $1`, kind, string(state), final)
	require.Equal(t, n, ask[int](t, s, "select count(*) from jobs where job_type = $1", kind))
}

// collect reads rows into structs, by the names of their fields.
func collect[T any](rows pgx.Rows) ([]T, error) {
	return pgx.CollectRows(rows, pgx.RowToStructByName[T])
}

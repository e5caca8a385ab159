-- Everything about a job except its lease id and its attempts, for operators. A held
-- job has no time, and a job that is not running has no lease.
-- Index: jobs_pkey, leases_pkey.
select j.job_id as id, j.job_type as type, j.tenant, j.state::text as state, j.created_at, j.updated_at, j.started_at,
    j.finished_at, j.progress::text as progress, j.result::text as result, j.payload::text as payload,
    j.checkpoint::text as checkpoint, coalesce(j.idempotency_key, '') as idempotency_key, j.tags,
    j.priority, nullif(j.run_at, 'infinity') as due_at, j.expires_at as lapses_at, coalesce(j.terms, '{}') as terms,
    j.attempt as charged, j.max_attempts, j.interruptions, j.crashes,
    j.fence, j.timeout, coalesce(j.last_error, '') as last_error, coalesce(j.worker_id, '') as worker,
    j.trace_parent, j.trace_state, l.worker_id as lease_worker, l.claimed_at, l.expires_at,
    l.cancel_requested as canceling
from current_jobs j
left join leases l on l.job_id = j.job_id
where j.job_id = $1;

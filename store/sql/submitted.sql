-- The new ids that are already jobs, for a submission whose commit was not
-- acknowledged.
-- Index: jobs_pkey, leases_pkey.
select job_id, tenant, coalesce(idempotency_key, '') as idempotency_key, job_type, request_hash,
    state::text as state, created_at, updated_at, true as fresh
from current_jobs
where job_id = any($1::uuid[]);

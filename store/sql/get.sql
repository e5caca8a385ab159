-- One job as clients may see it.
-- Index: jobs_pkey, leases_pkey.
select job_id as id, job_type as type, tenant, state::text as state, created_at, updated_at, started_at,
    finished_at, erased_at, progress::text as progress, result::text as result, trace_parent, trace_state
from current_jobs
where job_id = $1;

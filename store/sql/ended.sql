-- The jobs of $1 whose state is final, as clients may see them.
-- Index: jobs_pkey.
select job_id as id, job_type as type, tenant, state::text as state, created_at, updated_at, started_at,
    finished_at, erased_at, progress::text as progress, result::text as result, trace_parent, trace_state
from jobs
where job_id = any($1::uuid[]) and state in ('succeeded', 'dead', 'canceled');

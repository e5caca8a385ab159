-- The jobs of $1, as clients may see them, with their callback URLs. Progress and results of
-- more than $2 bytes are left out; such results are omitted.
-- Locks: ledger rows, in the order of their ids, so that an erasure either is seen here, or
-- sees the deliveries that are made.
-- Index: jobs_pkey.
select job_id as id, job_type as type, tenant, state::text as state, created_at, updated_at, started_at,
    finished_at, trace_parent, trace_state, callback_url as url,
    case when octet_length(progress::text) <= $2 then progress::text end as progress,
    case when octet_length(result::text) <= $2 then result::text end as result,
    coalesce(octet_length(result::text) > $2, false) as omitted
from jobs
where job_id = any($1::uuid[]) and callback_url is not null
order by jobs.job_id
for share;

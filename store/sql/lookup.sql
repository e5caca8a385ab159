-- The job $1 and the jobs with the idempotency key $2, of the tenant $3 or of all, newest
-- first, at most $5. For all, the key is looked up for one tenant after another: the first $4
-- that have any keys.
-- Index: jobs_pkey, jobs_idempotency_key, leases_pkey, unsuccessful_attempts_pkey.
with recursive tenants as (
    select 1 as nth, coalesce($3::text, (
        select j.tenant from jobs j where j.idempotency_key is not null order by j.tenant, j.idempotency_key limit 1
    )) as tenant
    union all
    select t.nth + 1, (
        select j.tenant
        from jobs j
        where j.idempotency_key is not null and j.tenant > t.tenant
        order by j.tenant, j.idempotency_key
        limit 1
    )
    from tenants t
    where $3::text is null and t.tenant is not null and t.nth < $4::integer
), named as (
    select $1::uuid as job_id
    union all
    select k.job_id
    from tenants t
    cross join lateral (
        select j.job_id from jobs j where j.tenant = t.tenant and j.idempotency_key = $2::text offset 0
    ) k
    where k.job_id is distinct from $1::uuid
)
select j.*
from named n
cross join lateral (
    select j.job_id as id, j.job_type as type, j.tenant, j.state::text as state, j.created_at, j.updated_at,
        j.started_at, j.finished_at, j.erased_at, j.progress::text as progress, j.result::text as result,
        j.trace_parent, j.trace_state,
        j.tags, j.priority, nullif(j.run_at, 'infinity') as due_at, j.attempt as charged, j.max_attempts,
        coalesce(j.worker_id, '') as worker,
        coalesce(substring(j.last_error from '^[^\r\n]{0,200}'), '') as last_error,
        coalesce(case when j.state <> 'succeeded' then (
            select a.error_code
            from unsuccessful_attempts a
            where a.job_id = j.job_id
            order by a.job_id desc, a.fence desc
            limit 1
        ) end, '') as code
    from current_jobs j
    where j.job_id = n.job_id
    limit 1
) j
where $3::text is null or j.tenant = $3::text
order by j.id desc
limit $5;

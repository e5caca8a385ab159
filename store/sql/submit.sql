-- Submit jobs: none -> created | queued. Many rows, all or none.
-- Clock: now(). Fence: none needed; the ids are new.
-- Locks: key order (the caller sorts by tenant and key), so that two batches with the
-- same keys cannot deadlock. The keys within a batch are distinct.
-- A key that exists is written again unchanged, for two reasons: the row is then
-- returned even if another transaction is committing it, and the answer waits for the
-- same replication as the first one did.
-- A row that we inserted has no xmax; one that existed has ours.
-- Index: jobs_idempotency_key; leases_pkey for a key that exists.
with input as (
    select *
    from unnest(
        $1::uuid[], $2::text[], $3::text[], $4::bytea[], $5::text[],
        $6::smallint[], $7::timestamptz[], $8::interval[], $9::boolean[],
        $10::integer[], $11::interval[], $12::text[], $13::text[], $14::text[],
        $15::text[]
    ) as i (
        job_id, tenant, job_type, request_hash, payload,
        priority, run_at, delay, hold,
        max_attempts, timeout, tags, trace_parent, trace_state,
        idempotency_key
    )
), due as (
    select *, case
        when hold then 'infinity'::timestamptz
        else coalesce(run_at, now() + delay, now())
    end as due_at
    from input
), written as (
    insert into jobs (
        job_id, tenant, job_type, priority, idempotency_key, request_hash, payload, tags,
        trace_parent, trace_state, max_attempts, timeout, state, run_at
    )
    select
        job_id, tenant, job_type, priority, idempotency_key, request_hash, payload::json,
        case when tags is null then '{}' else array(select json_array_elements_text(tags::json)) end,
        trace_parent, trace_state, max_attempts, timeout,
        (case when due_at > now() then 'created' else 'queued' end)::job_state, due_at
    from due
    on conflict (tenant, idempotency_key) where idempotency_key is not null
    do update set idempotency_key = excluded.idempotency_key
    returning job_id, tenant, idempotency_key, job_type, request_hash, state, priority, run_at,
        created_at, updated_at, xmax = 0 as fresh
), queued as (
    insert into ready (job_id, job_type, urgency, run_at)
    select job_id, job_type, -priority, run_at from written where fresh and state = 'queued'
), waiting as (
    insert into timers (job_id, run_at, job_type)
    select job_id, run_at, job_type from written where fresh and state = 'created'
), tallied as (
    insert into tallies (slot, job_type, worker_id, event, attempt, jobs, seconds)
    select date_bin('10 seconds', now(), 'epoch'), job_type, '', 'submitted', 0, count(*), 0
    from written
    where fresh
    group by job_type
)
select job_id, tenant, coalesce(idempotency_key, '') as idempotency_key, job_type, request_hash,
    case
        when fresh then state::text
        else coalesce((select 'running' from leases l where l.job_id = written.job_id), state::text)
    end as state,
    created_at, updated_at, fresh
from written;

-- Submit jobs of which some have gates, expire, must be unique, have a parent or a callback
-- URL, are followed, or are submitted anew: none -> created | queued. Many rows, all or none.
-- Like submit.sql (a test compares them), with or without keys. A job with gates that is
-- due is parked in the lane of its first gate, and the lanes are put into the admitter's
-- inbox. A job that is not due goes through its gates later.
-- Of the submissions that must be unique, only those are stored whose digest belongs to
-- them: see claim_unique.sql. Those whose job exists are let through to find it, or to
-- fail for its id.
-- Clock: now(). Fence: none needed; the ids are new.
-- Locks: key order (the caller sorts by tenant and key), so that two batches with the
-- same keys cannot deadlock. The keys within a batch are distinct.
-- Index: jobs_idempotency_key; unique_keys_pkey, jobs_pkey; leases_pkey for a key that exists.
with input as (
    select *
    from unnest(
        $1::uuid[], $2::text[], $3::text[], $4::bytea[], $5::text[],
        $6::smallint[], $7::timestamptz[], $8::interval[], $9::boolean[],
        $10::integer[], $11::interval[], $12::text[], $13::text[], $14::text[],
        $15::text[],
        $16::text[], $17::text[], $18::timestamptz[], $19::interval[],
        $20::bytea[], $21::uuid[], $22::boolean[], $23::text[], $24::uuid[]
    ) as i (
        job_id, tenant, job_type, request_hash, payload,
        priority, run_at, delay, hold,
        max_attempts, timeout, tags, trace_parent, trace_state,
        idempotency_key,
        gates, terms, expires_at, ttl,
        digest, parent_id, followed, callback_url, resubmission_of
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
        trace_parent, trace_state, max_attempts, timeout, state, run_at,
        gates, terms, expires_at, parent_id, followed, callback_url, resubmission_of
    )
    select
        job_id, tenant, job_type, priority, idempotency_key, request_hash, payload::json,
        case when tags is null then '{}' else array(select json_array_elements_text(tags::json)) end,
        trace_parent, trace_state, max_attempts, timeout,
        (case when due_at > now() then 'created' else 'queued' end)::job_state, due_at,
        case when gates is not null then array(select json_array_elements_text(gates::json)) end,
        terms::jsonb, coalesce(expires_at, now() + ttl), parent_id, nullif(followed, false), callback_url, resubmission_of
    from due
    where digest is null
        or (select u.job_id from unique_keys u where u.digest = due.digest) = job_id
        or (select j.job_id from jobs j where j.job_id = due.job_id) is not null
        or idempotency_key is not null and (
            select j.job_id from jobs j where j.tenant = due.tenant and j.idempotency_key = due.idempotency_key
        ) is not null
    on conflict (tenant, idempotency_key) where idempotency_key is not null
    do update set idempotency_key = excluded.idempotency_key
    returning job_id, tenant, idempotency_key, job_type, request_hash, state, priority, run_at,
        created_at, updated_at, gates, terms, expires_at, xmax = 0 as fresh
), queued as (
    insert into ready (job_id, job_type, urgency, run_at)
    select job_id, job_type, -priority, run_at from written where fresh and state = 'queued' and gates is null
), gated as (
    insert into parked (job_id, lane, urgency, position, job_type, tenant, gates, capacity, on_conflict)
    select job_id, gates[1], -priority, run_at, job_type, tenant, gates,
        (terms ->> 'concurrencyLimit')::integer, terms ->> 'onConflict'
    from written
    where fresh and state = 'queued' and gates is not null
), woken as (
    insert into wakes (gates, freed)
    select array_agg(distinct gates[1]), false
    from written
    where fresh and state = 'queued' and gates is not null
    having count(*) > 0
), expiring as (
    insert into expiries (job_id, expires_at)
    select job_id, expires_at from written where fresh and expires_at is not null
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

-- Submit jobs without an idempotency key: none -> created | queued. Many rows, all or
-- none.
-- Like submit.sql (a test compares them), but no row can conflict. With keys, the server
-- first inserts each row speculatively, with a lock and a WAL record of its own (48
-- bytes). All jobs are stored as given, so one row describes them all: when, and which of
-- them are not due yet.
-- Clock: now(). Fence: none needed; the ids are new.
-- Locks: the ids; the same submission sent again waits for them.
-- Index: jobs_pkey.
with input as (
    select *
    from unnest(
        $1::uuid[], $2::text[], $3::text[], $4::bytea[], $5::text[],
        $6::smallint[], $7::timestamptz[], $8::interval[], $9::boolean[],
        $10::integer[], $11::interval[], $12::text[], $13::text[], $14::text[]
    ) as i (
        job_id, tenant, job_type, request_hash, payload,
        priority, run_at, delay, hold,
        max_attempts, timeout, tags, trace_parent, trace_state
    )
), due as (
    select *, case
        when hold then 'infinity'::timestamptz
        else coalesce(run_at, now() + delay, now())
    end as due_at
    from input
), written as (
    insert into jobs (
        job_id, tenant, job_type, priority, request_hash, payload, tags,
        trace_parent, trace_state, max_attempts, timeout, state, run_at
    )
    select
        job_id, tenant, job_type, priority, request_hash, payload::json,
        case when tags is null then '{}' else array(select json_array_elements_text(tags::json)) end,
        trace_parent, trace_state, max_attempts, timeout,
        (case when due_at > now() then 'created' else 'queued' end)::job_state, due_at
    from due
    returning job_id, job_type, state, priority, run_at
), queued as (
    insert into ready (job_id, job_type, urgency, run_at)
    select job_id, job_type, -priority, run_at from written where state = 'queued'
), waiting as (
    insert into timers (job_id, run_at, job_type)
    select job_id, run_at, job_type from written where state = 'created'
), tallied as (
    insert into tallies (slot, job_type, worker_id, event, attempt, jobs, seconds)
    select date_bin('10 seconds', now(), 'epoch'), job_type, '', 'submitted', 0, count(*), 0
    from written
    group by job_type
)
select now() as created_at, array(select job_id from written where state = 'created') as waiting;

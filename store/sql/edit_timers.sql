-- Change those of the jobs $1 that are scheduled, held, or wait for their next attempt; see
-- edit_ready.sql for the parameters. A job that is due now is queued: created | retry ->
-- queued. A held job stays held unless it gets a due time.
-- Clock: now().
-- Locks: timer rows, then ledger rows.
-- Index: jobs_pkey, timers_pkey.
with chosen as materialized (
    select job_id
    from jobs
    where job_id = any ($1::uuid[]) and state in ('created', 'retry')
        and ($6::text[] is null or state::text = any ($6)) and ($7::text is null or $7 = any (tags))
        and ($8::smallint is null or priority < $8)
    order by job_id
), freed as (
    delete from timers t using chosen c
    where t.job_id = c.job_id
    returning t.job_id
), edited as (
    update jobs j
    set priority = coalesce($2::smallint, j.priority), tags = coalesce($5::text[], j.tags),
        run_at = coalesce($3::timestamptz, now() + $4::interval, j.run_at),
        state = case when coalesce($3, now() + $4) <= now() then 'queued' else j.state end,
        updated_at = now()
    from freed f
    where j.job_id = f.job_id
    returning j.job_id, j.job_type, j.tenant, j.state, j.priority, j.run_at, j.attempt, j.gates, j.terms, j.trace_parent, j.trace_state
), scheduled as (
    insert into timers (job_id, run_at, job_type, state, attempt)
    select job_id, run_at, job_type, state, attempt from edited where state <> 'queued'
), listed as (
    insert into ready (job_id, job_type, urgency, run_at, attempt)
    select job_id, job_type, -priority, run_at, attempt from edited where state = 'queued' and gates is null
), arrived as (
    insert into parked (job_id, lane, urgency, position, job_type, tenant, gates, attempt, capacity, on_conflict)
    select job_id, gates[1], -priority, run_at, job_type, tenant, gates, attempt,
        (terms ->> 'concurrencyLimit')::integer, terms ->> 'onConflict'
    from edited
    where state = 'queued' and gates is not null
    returning lane
), woken as (
    insert into wakes (gates, freed)
    select array_agg(distinct lane), false from arrived having count(*) > 0
)
select job_id as id, job_type as type, tenant, state::text as state, trace_parent, trace_state, gates is not null as gated
from edited;

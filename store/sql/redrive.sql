-- Requeue up to $1 dead jobs, the longest dead first: dead -> queued. Only of type $2
-- and tenant $3, unless these are empty. Those with gates are parked. None expires any more.
-- Clock: now().
-- Locks: dead letters, oldest first, skipping locked ones; then ledger rows.
-- Index: dead_letters_dead_at, jobs_pkey.
with oldest as materialized (
    select job_id
    from dead_letters
    where ($2::text = '' or job_type = $2) and ($3::text = '' or tenant = $3)
    order by dead_at, job_id
    limit $1 for update skip locked
), freed as (
    delete from dead_letters d using oldest o where d.job_id between o.job_id and o.job_id
    returning d.job_id
), spent as (
    select j.job_id, j.attempt from jobs j join freed f on f.job_id = j.job_id
), queued as (
    update jobs j
    set state = 'queued', attempt = 0, interruptions = 0, crashes = 0, last_error = null, worker_id = null,
        started_at = null, finished_at = null, run_at = now(), updated_at = now(), expires_at = null
    from spent f
    where j.job_id = f.job_id
    returning j.job_id, j.job_type, j.tenant, j.priority, j.run_at, j.trace_parent, j.trace_state, j.gates, j.terms,
        f.attempt
), tallied as (
    insert into tallies (slot, job_type, worker_id, event, attempt, jobs, seconds)
    select date_bin('10 seconds', now(), 'epoch'), job_type, '', 'requeued', attempt, count(*), 0
    from queued
    group by job_type, attempt
), listed as (
    insert into ready (job_id, job_type, urgency, run_at)
    select job_id, job_type, -priority, run_at from queued where gates is null
), gated as (
    insert into parked (job_id, lane, urgency, position, job_type, tenant, gates, capacity, on_conflict)
    select job_id, gates[1], -priority, run_at, job_type, tenant, gates,
        (terms ->> 'concurrencyLimit')::integer, terms ->> 'onConflict'
    from queued
    where gates is not null
), woken as (
    insert into wakes (gates, freed)
    select array_agg(distinct gates[1]), false from queued where gates is not null having count(*) > 0
)
select job_id as id, job_type as type, tenant, trace_parent, trace_state from queued;

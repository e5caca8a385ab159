-- Move up to $1 due jobs to the ready list, or park them if they have gates:
-- created | retry -> queued.
-- Clock: now().
-- Locks: timer rows, earliest first, skipping locked ones; then ledger rows.
-- Index: timers_run_at.
with due as materialized (
    select job_id
    from timers
    where run_at <= now()
    order by run_at
    limit $1 for update skip locked
), taken as (
    delete from timers t using due d where t.job_id between d.job_id and d.job_id
    returning t.job_id
), queued as (
    update jobs j
    set state = 'queued', updated_at = now()
    from taken t
    where j.job_id = t.job_id
    returning j.job_id, j.job_type, j.priority, j.run_at, j.attempt, j.tenant, j.gates, j.terms
), listed as (
    insert into ready (job_id, job_type, urgency, run_at, attempt)
    select job_id, job_type, -priority, run_at, attempt from queued where gates is null
), gated as (
    insert into parked (job_id, lane, urgency, position, job_type, tenant, gates, attempt, capacity, on_conflict)
    select job_id, gates[1], -priority, run_at, job_type, tenant, gates, attempt,
        (terms ->> 'concurrencyLimit')::integer, terms ->> 'onConflict'
    from queued
    where gates is not null
), woken as (
    insert into wakes (gates, freed)
    select array_agg(distinct gates[1]), false from queued where gates is not null having count(*) > 0
)
select count(*) filter (where gates is null) as ready, count(*) filter (where gates is not null) as parked
from queued;

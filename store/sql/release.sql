-- Release a held or scheduled job: created -> queued, due now. It is parked if it has
-- gates.
-- Clock: now().
-- Locks: the timer row, then the ledger row.
-- Index: jobs_pkey, timers_pkey.
with freed as (
    delete from timers t using jobs j
    where t.job_id = $1 and j.job_id = t.job_id and j.state = 'created'
    returning t.job_id
), queued as (
    update jobs j
    set state = 'queued', run_at = now(), updated_at = now()
    from freed f
    where j.job_id = f.job_id
    returning j.job_id, j.job_type, j.priority, j.run_at, j.tenant, j.gates, j.terms
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
select job_id from queued;

-- Release a held or scheduled job: created -> queued, due now. It is parked if it has
-- gates. One that waits for others of its workflow stays; it is held no more. Any other whose
-- workflow is held is left alone.
-- Clock: now().
-- Locks: the job's workflow, its row there, then the timer row, then the ledger row.
-- Index: jobs_pkey, timers_pkey, workflow_jobs_pkey, workflows_pkey.
with barred as materialized (
    select w.held
    from workflows w
    where w.workflow_id = any (array(select wj.workflow_id from workflow_jobs wj where wj.job_id = $1))
    order by w.workflow_id for share
), noted as (
    update workflow_jobs w
    set run_at = null
    from jobs j
    where j.job_id = $1 and j.followed and w.job_id = j.job_id and w.run_at = 'infinity'
        and (w.missing > 0 or not exists (select from barred where held))
    returning w.missing
), freed as (
    delete from timers t using jobs j
    where t.job_id = $1 and j.job_id = t.job_id and j.state = 'created' and (select count(*) from noted) >= 0
        and (j.followed is null or not exists (
            select from workflow_jobs w where w.job_id = j.job_id and w.missing > 0
        ))
        and not exists (select from barred where held)
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
select job_id from queued
union all
select $1 from noted where missing > 0;

-- Requeue a dead job: dead -> queued, as if it had never been tried. It keeps its fence
-- and its attempt rows, and does not expire. It is parked if it has gates.
-- A job that was blanked is not requeued, nor one whose workflow is held or canceled.
-- Clock: now().
-- Locks: the job's workflow, then the dead letter, then the ledger row.
-- Index: workflow_jobs_pkey, workflows_pkey, dead_letters_pkey, jobs_pkey.
with barred as materialized (
    select w.held, w.canceled_at is not null as canceled
    from workflows w
    where w.workflow_id = any (array(select wj.workflow_id from workflow_jobs wj where wj.job_id = $1))
    order by w.workflow_id for share
), freed as (
    delete from dead_letters
    where job_id = $1 and erased is not true and not exists (select from barred where held or canceled)
    returning job_id
), spent as (
    select j.job_id, j.attempt from jobs j join freed f on f.job_id = j.job_id
), queued as (
    update jobs j
    set state = 'queued', attempt = 0, interruptions = 0, crashes = 0, last_error = null, worker_id = null,
        started_at = null, finished_at = null, run_at = now(), updated_at = now(), expires_at = null
    from spent f
    where j.job_id = f.job_id
    returning j.job_id, j.job_type, j.priority, j.run_at, j.tenant, j.gates, j.terms, f.attempt
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
select job_id from queued;

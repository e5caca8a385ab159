-- Requeue up to $1 dead jobs, the longest dead first: dead -> queued. Only of type $2,
-- tenant $3, error code $4 and fingerprint $5, unless these are empty. Those of a type and a
-- fingerprint are found by these; of the two scans, only one is done. Those with gates are
-- parked. None expires any more. Blanked ones are left, and
-- those whose workflow is held or canceled.
-- Clock: now().
-- Locks: dead letters, oldest first, skipping locked ones; then ledger rows.
-- Index: dead_letters_dead_at or dead_letters_group; dead_letters_pkey, jobs_pkey,
-- workflow_jobs_pkey, workflows_pkey.
with oldest as materialized (
    select job_id
    from dead_letters d
    where erased is not true and ($2::text = '' or $5::text = '')
        and ($2 = '' or job_type = $2) and ($3::text = '' or tenant = $3)
        and ($4::text = '' or error_code = $4) and ($5 = '' or fingerprint = $5)
        and (select w.held or w.canceled_at is not null
            from workflow_jobs wj
            join workflows w on w.workflow_id = wj.workflow_id
            where wj.job_id = d.job_id) is not true
    order by dead_at, job_id
    limit $1 for update of d skip locked
), oldest_of_group as materialized (
    select job_id
    from dead_letters d
    where erased is not true and $2 <> '' and $5 <> '' and fingerprint >= ''
        and (job_type, fingerprint, dead_at, job_id) >= ($2, $5, '-infinity', '00000000-0000-0000-0000-000000000000')
        and (job_type, fingerprint, dead_at, job_id) <= ($2, $5, 'infinity', 'ffffffff-ffff-ffff-ffff-ffffffffffff')
        and ($3 = '' or tenant = $3) and ($4 = '' or error_code = $4)
        and (select w.held or w.canceled_at is not null
            from workflow_jobs wj
            join workflows w on w.workflow_id = wj.workflow_id
            where wj.job_id = d.job_id) is not true
    order by job_type, fingerprint, dead_at, job_id
    limit $1 for update of d skip locked
), freed as (
    delete from dead_letters d using (select * from oldest union all select * from oldest_of_group) o
    where d.job_id between o.job_id and o.job_id
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

-- Park claimed jobs that may not start, at gates that they did not have to pass before:
-- running -> queued, uncharged, and without a row for the attempt, which never began. $3
-- are the job's gates from now on; without any, it is ready again. A job whose cancel was
-- requested is left alone: the caller must cancel it. A job that has not started still
-- expires.
-- Clock: now().
-- Locks: lease rows in the order sent (the caller sorts by job), then ledger rows.
-- Fence: lease_id. The ledger gets the lease's fence, so that none is issued twice.
-- Index: leases_pkey, jobs_pkey, expiries_pkey.
with batch as (
    select *
    from unnest($1::uuid[], $2::uuid[], $3::text[]) as b (job_id, lease_id, gates)
), freed as (
    delete from leases l using batch b
    where l.job_id between b.job_id and b.job_id and l.lease_id = b.lease_id and not l.cancel_requested
    returning b.*, l.fence
), passed as (
    select f.*, j.gates as held from jobs j join freed f on f.job_id = j.job_id
), queued as (
    update jobs j
    set fence = p.fence, updated_at = now(),
        gates = case when p.gates is not null then array(select json_array_elements_text(p.gates::json)) end
    from passed p
    where j.job_id = p.job_id
    returning p.lease_id, p.held, j.job_id, j.job_type, j.priority, j.run_at, j.attempt, j.tenant, j.gates, j.terms,
        j.expires_at
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
    select array_agg(gate), true
    from queued
    cross join unnest(held) gate
    where held is not null
    having count(*) > 0
    union all
    select array_agg(distinct gates[1]), false from queued where gates is not null having count(*) > 0
), expiring as (
    insert into expiries (job_id, expires_at)
    select job_id, expires_at from queued where expires_at is not null
    on conflict (job_id) do nothing
)
select lease_id from queued;

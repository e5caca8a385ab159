-- Cancel, for each of the gates $1 of newcomers, as many as $2 of the jobs that have held
-- slots of its key for longest: queued -> canceled at once, with the reasons $3. For those
-- that run, the request is left on the lease, and the reason in the ledger. A job whose
-- cancel was requested already is left out. So is a job that is ready and came when its key
-- queued: only the gate's own jobs are known before they run. done is 'canceled' or
-- 'requested'.
-- Clock: clock_timestamp(), as cancel_newcomers.sql.
-- Locks: ready rows, skipping locked ones; then lease rows in job order, as whoever settles
-- or renews them; then ledger rows. A job that is being claimed is found in neither list, and
-- not canceled.
-- Index: admitted_pkey, ready_pkey, leases_pkey, jobs_pkey. leases is read whole for each
-- gate, with the ledger rows: conflicts are rare, and the running jobs few.
with victims as materialized (
    select v.*, b.reason
    from unnest($1::text[], $2::integer[], $3::text[]) as b (gate, jobs, reason)
    cross join lateral (
        select active.*
        from (
            select a.job_id, a.job_type, a.urgency, a.position, a.admitted_at as since
            from admitted a
            left join ready r on r.job_type = a.job_type and r.urgency = a.urgency and r.run_at = a.position
                and r.job_id between a.job_id and a.job_id
            left join leases l on l.job_id between a.job_id and a.job_id
            where a.gate = b.gate and (r.job_id is not null or not l.cancel_requested)
            union all
            select l.job_id, null, null, null, l.claimed_at
            from leases l
            where not l.cancel_requested
                and (select 'key:' || substr(b.gate, 5) = any (j.gates) from jobs j where j.job_id = l.job_id)
                and not exists (select from admitted a where a.gate = b.gate and a.job_id = l.job_id)
        ) active
        order by active.since, active.job_id
        limit b.jobs
    ) v
), in_ready as materialized (
    select r.ctid as at, v.job_id, v.reason
    from victims v
    join ready r on r.job_type = v.job_type and r.urgency = v.urgency and r.run_at = v.position and r.job_id between v.job_id and v.job_id
    for update of r skip locked
), leased as materialized (
    select v.job_id, v.reason
    from victims v
    join leases l on l.job_id between v.job_id and v.job_id
    order by v.job_id for update of l
), unqueued as (
    delete from ready r using in_ready i where r.ctid = i.at
    returning i.job_id, i.reason
), asked as (
    update leases l set cancel_requested = true from leased v
    where l.job_id between v.job_id and v.job_id
    returning l.job_id, v.reason
), explained as (
    update jobs j set last_error = a.reason from asked a where j.job_id = a.job_id
), canceled as (
    update jobs j
    set state = 'canceled', last_error = u.reason, finished_at = clock_timestamp(), updated_at = clock_timestamp()
    from unqueued u
    where j.job_id = u.job_id
    returning j.job_id, j.job_type, j.attempt, j.gates, j.followed
), told as (
    insert into ends (job_id, state, at)
    select job_id, 'canceled', clock_timestamp() from canceled where followed
), freed as (
    insert into wakes (gates, freed)
    select array_agg(gate), true from canceled cross join unnest(gates) gate having count(*) > 0
), tallied as (
    insert into tallies (slot, job_type, worker_id, event, attempt, jobs, seconds)
    select date_bin('10 seconds', now(), 'epoch'), job_type, '', 'withdrawn', attempt, count(*), 0
    from canceled
    group by job_type, attempt
)
select job_id, 'canceled' as done from canceled
union all
select job_id, 'requested' from asked;

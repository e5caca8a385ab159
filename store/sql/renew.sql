-- After lock_worker.sql: mark worker $4 as alive for $3, and renew its leases: those that are kept
-- by that, the others ($1 job, $2 lease) one by one. Returns those of the others that are held; what
-- is missing is lost. A lease whose handler has begun is kept from now on, and kept.sql returns it.
-- Each notes after how many milliseconds from the claim its handler began ($5), null if it has not.
-- Kept leases that the worker does not know ($6) expire. A worker that was silent for a lease has lost
-- its kept leases: they expired then, and stay so.
-- expires_at of a kept lease is for orchestrators that do not know that column. Workers name such a lease
-- again before an hour is over.
-- Clock: clock_timestamp(), read after the row is locked: a renewal that had to wait
-- must not revive an expired lease. Once for the worker: reap.sql relies on what lies between its two times.
-- Locks: the worker's row, without which a reaper takes no kept lease over; then rows of named leases in job
-- order, then those of kept leases that end, likewise. The latter may meet a settlement in a deadlock, which
-- costs a try.
-- Fence: lease_id; worker_id for kept leases.
-- Index: leases_pkey, workers_pkey; leases_kept to find the kept leases that end. They are locked by leases_pkey, in
-- the order of their jobs: as an array, and with "is not false", which that index cannot answer.
with before as materialized (
    select alive_until, clock_timestamp() as heard_at from workers where worker_id = $4
), alive as materialized (
    update workers w
    set alive_until = b.heard_at + $3::interval, heartbeat_at = b.heard_at
    from before b
    where w.worker_id = $4
    returning w.worker_id, b.alive_until as expired_at, b.alive_until <= b.heard_at as silent
), ended as materialized (
    select l.job_id, coalesce((select expired_at from alive where silent), clock_timestamp()) as expired_at
    from (
        select job_id
        from unnest(array(
            select job_id
            from leases
            where exists (select from alive where silent or cardinality($6::uuid[]) > 0)
                and worker_id = $4 and kept and (lease_id = any ($6::uuid[]) or exists (select from alive where silent))
        )) as found (job_id)
        order by job_id
    ) e
    cross join lateral (
        select job_id from leases where job_id between e.job_id and e.job_id and kept is not false for update
    ) l
), expired as (
    update leases l
    set kept = false, expires_at = e.expired_at
    from ended e
    where l.job_id between e.job_id and e.job_id
), held as materialized (
    select l.job_id, h.began_ms,
        l.worker_id in (select worker_id from alive) and (l.kept or h.began_ms is not null) as keep
    from unnest($1::uuid[], $2::uuid[], $5::integer[]) as h (job_id, lease_id, began_ms)
    join leases l on l.job_id between h.job_id and h.job_id and l.lease_id = h.lease_id
    order by h.job_id
    for update of l
), renewed as (
    update leases l
    set kept = h.keep, began_ms = coalesce(h.began_ms, l.began_ms),
        expires_at = clock_timestamp() + $3::interval + case when h.keep then interval '1 hour' else interval '0' end
    from held h
    where l.job_id between h.job_id and h.job_id and case
        when l.kept then l.worker_id in (select worker_id from alive where not silent) and l.lease_id <> all ($6::uuid[])
        else l.expires_at > clock_timestamp()
    end
    returning l.lease_id as id, l.cancel_requested, l.kept
)
select id, cancel_requested from renewed where not kept;

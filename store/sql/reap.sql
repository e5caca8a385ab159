-- Take over up to $1 expired leases for $2 each. The jobs stay running. The caller owns
-- them under a new lease_id and must settle them; the previous owner can no longer
-- write. If the caller dies, its leases expire and are taken over too. Kept leases expire with
-- their worker, or if nobody knows it.
-- A worker also counts as gone if it sent no heartbeat in the second half of the lease:
-- it died soon after a heartbeat that did not include the lease yet.
-- Clock: now() to find, clock_timestamp() for the new expiry. The locked read checks
-- the expiry, so a lease that was renewed meanwhile is left alone.
-- Locks: rows of workers that are gone and still have kept leases, because a heartbeat that has them may
-- be about to extend those. Whoever is silent for two leases is gone, locked or not: no answer to a heartbeat can
-- prove a lease any more. Then lease rows, oldest expiry first; skipping locked ones of both.
-- Index: leases is read whole, which is as small as the number of running jobs;
-- leases_kept, jobs_pkey, workers_pkey; unsuccessful_attempts_pkey for jobs that are traced.
with keepers as materialized (
    select distinct worker_id from leases where kept
), gone as materialized (
    select w.worker_id, w.alive_until
    from keepers k
    join workers w on w.worker_id between k.worker_id and k.worker_id
    where w.alive_until <= now()
    for update of w skip locked
), long_gone as materialized (
    select w.worker_id, w.alive_until
    from keepers k
    join workers w on w.worker_id between k.worker_id and k.worker_id
    where w.alive_until + (w.alive_until - w.heartbeat_at) <= now()
), expired as materialized (
    select l.job_id, case when l.kept then coalesce(g.alive_until, now()) else l.expires_at end as expires_at
    from leases l
    left join (select * from gone union select * from long_gone) g on g.worker_id = l.worker_id and l.kept
    where case
        when l.kept then g.worker_id is not null or l.worker_id not in (select worker_id from workers)
        else l.expires_at <= now()
    end
    order by expires_at
    limit $1 for update of l skip locked
), taken as (
    update leases l
    set lease_id = gen_random_uuid(), kept = false, expires_at = clock_timestamp() + $2::interval
    from expired e
    where l.job_id between e.job_id and e.job_id
    returning l.job_id, l.lease_id, l.fence, l.worker_id, l.cancel_requested, l.claimed_at, e.expires_at as expired_at
)
select t.job_id, t.lease_id as id, t.fence, j.gates is not null as gated, t.worker_id as worker, t.cancel_requested,
    j.job_type as type, j.attempt + 1 as attempt, j.max_attempts, j.interruptions, j.crashes,
    j.tenant, j.trace_parent, j.trace_state, j.created_at, j.run_at, t.claimed_at, t.expired_at,
    clock_timestamp() as reaped_at,
    (select w.heartbeat_at from workers w where w.worker_id = t.worker_id) as heard_at,
    last.ended_at as last_ended_at, last.outcome::text as last_outcome,
    coalesce((
        select w.alive_until <= now() or w.stopped_at is not null
            or w.heartbeat_at < t.expired_at - (w.alive_until - w.heartbeat_at) / 2
        from workers w where w.worker_id = t.worker_id
    ), true) as worker_gone
from taken t
join jobs j on j.job_id = t.job_id
left join lateral (
    select a.ended_at, a.outcome
    from unsuccessful_attempts a
    where a.job_id = j.job_id and a.fence = j.fence and j.fence > 0 and j.trace_parent <> ''
) last on true;

-- Renew the leases ($1 job, $2 lease) for $3 more, and mark worker $4 as alive for as
-- long. Leases that are not returned are lost. Each lease notes after how many milliseconds
-- from the claim its handler began ($5), null if it has not.
-- Clock: clock_timestamp(), read after the row is locked: a renewal that had to wait
-- must not revive an expired lease.
-- Locks: lease rows in job order.
-- Fence: lease_id.
-- Index: leases_pkey.
with alive as (
    update workers
    set alive_until = clock_timestamp() + $3::interval, heartbeat_at = clock_timestamp()
    where worker_id = $4
), held as materialized (
    select l.job_id, h.began_ms
    from unnest($1::uuid[], $2::uuid[], $5::integer[]) as h (job_id, lease_id, began_ms)
    join leases l on l.job_id between h.job_id and h.job_id and l.lease_id = h.lease_id
    order by h.job_id
    for update of l
)
update leases l
set expires_at = clock_timestamp() + $3::interval, began_ms = h.began_ms
from held h
where l.job_id between h.job_id and h.job_id and l.expires_at > clock_timestamp()
returning l.lease_id as id, l.cancel_requested;

-- Release the leases of worker $1 that it does not know about, which are all but $2:
-- they were claimed, but the answer never arrived. They expire now, under a name that no
-- worker has, so that the reaper does not blame the jobs. Returns the jobs.
-- Clock: now().
-- Locks: lease rows, skipping locked ones.
-- Fence: the caller must not have a claim in flight.
-- Index: leases is read whole, which is rare, and it is small.
with unknown as materialized (
    select job_id
    from leases
    where worker_id = $1 and lease_id <> all ($2::uuid[])
    for update skip locked
)
update leases l
set kept = false, expires_at = case when l.kept then now() else least(l.expires_at, now()) end,
    worker_id = $1 || ' (claim unanswered)'
from unknown u
where l.job_id between u.job_id and u.job_id
returning l.job_id;

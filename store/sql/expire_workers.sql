-- Record that the workers $1 have ended, and expire the leases that they still hold, so
-- that the reaper takes them over. Returns how many leases those were.
-- The caller must know that they have ended: it is one of them, or the process id no
-- longer runs in the caller's own process namespace.
-- Clock: now().
-- Locks: lease rows in job order, then worker rows.
-- Index: workers_pkey; leases is read whole, which is rare, and it is small.
with held as materialized (
    select job_id from leases where worker_id = any($1::text[])
    order by job_id for update
), expired as (
    update leases l set expires_at = least(l.expires_at, now())
    from held h where l.job_id between h.job_id and h.job_id
    returning l.job_id
), ended as (
    update workers set stopped_at = now(), alive_until = least(alive_until, now())
    where worker_id = any($1::text[]) and stopped_at is null
)
select count(*) from expired;

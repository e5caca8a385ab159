-- The incarnations $1 have ended. Whatever leases they still hold expire now,
-- for the reaper to take over. Returns how many leases that were.
-- The caller must know that they have ended: its own, or by a process id that
-- no longer runs in the caller's own process namespace.
-- Clock: now().
-- Locks: lease rows in job order, then worker rows.
-- Index: workers_pkey; leases is read whole, which is rare and small.
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

-- Record that the workers $1 have ended, and expire the leases that they still hold, so
-- that the reaper takes them over. Returns how many leases those were.
-- The caller must know that they have ended: it is one of them, or the process id no
-- longer runs in the caller's own process namespace.
-- Clock: now().
-- Locks: worker rows, which are counted first so that they are locked first; then lease rows in job order.
-- A heartbeat does likewise.
-- Index: workers_pkey; leases is read whole, which is rare, and it is small.
with ended as (
    update workers set stopped_at = now(), alive_until = least(alive_until, now())
    where worker_id = any($1::text[]) and stopped_at is null
    returning worker_id
), held as materialized (
    select job_id from leases where worker_id = any($1::text[])
        and (select count(*) from ended) >= 0
    order by job_id for update
), expired as (
    update leases l set kept = false, expires_at = case when l.kept then now() else least(l.expires_at, now()) end
    from held h where l.job_id between h.job_id and h.job_id
    returning l.job_id
)
select count(*) from expired;

-- Settle attempts as succeeded: running -> succeeded. Returns the settled leases; one
-- that is missing was not held. The ledger itself records the attempt. If any job has
-- gates, succeed_gated.sql is used.
-- Clock: now().
-- Locks: lease rows in the order sent (the caller sorts by job), then ledger rows.
-- Fence: lease_id.
-- Index: leases_pkey, jobs_pkey.
with batch as (
    select *
    from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::integer[])
        as b (job_id, lease_id, result, plugin, plugin_version, span_id, began_ms)
), freed as (
    delete from leases l using batch b
    where l.job_id between b.job_id and b.job_id and l.lease_id = b.lease_id
    returning b.*, l.fence, l.worker_id, l.claimed_at
), settled as (
    update jobs j
    set state = 'succeeded', result = f.result::json, last_error = null, checkpoint = null, crashes = 0,
        attempt = j.attempt + 1, fence = f.fence, worker_id = f.worker_id, started_at = f.claimed_at,
        finished_at = now(), updated_at = now(),
        lease_id = f.lease_id, plugin = f.plugin, plugin_version = f.plugin_version, span_id = f.span_id, began_ms = f.began_ms
    from freed f
    where j.job_id = f.job_id
    returning j.lease_id, j.attempt, j.job_type, j.worker_id, j.started_at
), tallied as (
    insert into tallies (slot, job_type, worker_id, event, attempt, jobs, seconds)
    select date_bin('10 seconds', now(), 'epoch'), job_type, worker_id, 'succeeded', attempt, count(*),
        extract(epoch from sum(now() - started_at))
    from settled
    group by job_type, worker_id, attempt
)
select lease_id from settled;

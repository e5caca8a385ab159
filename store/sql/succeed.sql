-- Settle attempts as succeeded: running -> succeeded. Returns the leases
-- settled; one that is missing was not held.
-- Clock: now().
-- Locks: lease rows in the order sent (the caller sorts by job), then ledger rows.
-- Fence: lease_id.
-- Index: leases_pkey, jobs_pkey.
with batch as (
    select *
    from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[])
        as b (job_id, lease_id, result, plugin, plugin_version, span_id)
), freed as (
    delete from leases l using batch b
    where l.job_id = b.job_id and l.lease_id = b.lease_id
    returning b.*, l.fence, l.worker_id, l.claimed_at
), settled as (
    update jobs j
    set state = 'succeeded', result = f.result::json, last_error = null, checkpoint = null,
        finished_at = now(), updated_at = now()
    from freed f
    where j.job_id = f.job_id
    returning f.*, j.attempt, j.job_type
), tallied as (
    insert into tallies (slot, job_type, worker_id, event, attempt, jobs, seconds)
    select date_bin('10 seconds', now(), 'epoch'), job_type, worker_id, 'succeeded', attempt, count(*),
        extract(epoch from sum(now() - claimed_at))
    from settled
    group by job_type, worker_id, attempt
)
insert into job_attempts (
    job_id, fence, attempt, lease_id, worker_id, plugin, plugin_version, claimed_at, ended_at,
    outcome, span_id
)
select job_id, fence, attempt, lease_id, worker_id, plugin, plugin_version, claimed_at, now(),
    'succeeded', span_id
from settled
returning lease_id;

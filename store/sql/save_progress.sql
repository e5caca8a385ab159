-- Save progress ($3) and checkpoints ($4) of running attempts; null keeps the old
-- value. Returns the leases under which it wrote; one that is missing was not held.
-- Clock: now().
-- Locks: lease rows in the order sent (the caller sorts by job), shared, so that
-- nobody settles or takes over meanwhile; then ledger rows.
-- Fence: lease_id.
-- Index: leases_pkey, jobs_pkey.
with held as materialized (
    select b.job_id, b.lease_id, b.progress, b.checkpoint
    from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[])
        as b (job_id, lease_id, progress, checkpoint)
    join leases l on l.job_id between b.job_id and b.job_id and l.lease_id = b.lease_id
    for share of l
)
update jobs j
set progress = coalesce(h.progress::json, j.progress),
    checkpoint = coalesce(h.checkpoint::json, j.checkpoint),
    updated_at = now()
from held h
where j.job_id = h.job_id
returning h.lease_id;

-- Save the last log lines ($4) of running attempts. They replace those saved before.
-- Returns the leases under which it wrote; one that is missing was not held.
-- Locks: lease rows in the order sent (the caller sorts by job), shared, so that
-- nobody settles or takes over meanwhile; then rows of attempt_logs.
-- Fence: lease_id.
-- Index: leases_pkey, attempt_logs_pkey.
with held as materialized (
    select b.job_id, b.lease_id, l.fence, b.attempt, b.lines, b.dropped
    from unnest($1::uuid[], $2::uuid[], $3::integer[], $4::text[], $5::bigint[])
        as b (job_id, lease_id, attempt, lines, dropped)
    join leases l on l.job_id between b.job_id and b.job_id and l.lease_id = b.lease_id
    for share of l
), kept as (
    insert into attempt_logs (job_id, fence, attempt, lines, dropped)
    select job_id, fence, attempt, lines::json, dropped from held
    on conflict (job_id, fence) do update
    set lines = excluded.lines, dropped = excluded.dropped
)
select lease_id from held;

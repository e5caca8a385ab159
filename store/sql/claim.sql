-- Claim up to $5 jobs of the types $1 for worker $6: queued -> running.
-- Clock: the lease $7 runs from now().
-- Locks: ready rows, in key order, skipping those that another claimer holds;
-- then their ledger rows. MATERIALIZED, or the planner may run the LIMIT again
-- and claim too many.
-- Order: urgency, due time, creation. $2..$4 are a low-water mark for each
-- type: rows of the mark's urgency before it are passed over, because they are
-- dead index entries when an old snapshot keeps vacuum away. Rows more urgent
-- than the mark are always looked at.
-- Fence: grows by one. The attempt is counted here, so that a job that kills
-- its worker is charged for it.
-- Index: ready_pkey, twice for each type.
with want as (
    select *
    from unnest($1::text[], $2::smallint[], $3::timestamptz[], $4::uuid[])
        as w (job_type, urgency, run_at, job_id)
), picked as materialized (
    select found.place
    from want w
    cross join lateral (
        select * from (
            select r.ctid as place, r.urgency, r.run_at, r.job_id
            from ready r
            where r.job_type = w.job_type and r.urgency < w.urgency
            order by r.urgency, r.run_at, r.job_id
            limit $5 for update skip locked
        ) more_urgent
        union all
        select * from (
            select r.ctid as place, r.urgency, r.run_at, r.job_id
            from ready r
            where r.job_type = w.job_type
                and (r.urgency, r.run_at, r.job_id) >= (w.urgency, w.run_at, w.job_id)
            order by r.urgency, r.run_at, r.job_id
            limit $5 for update skip locked
        ) from_the_mark
    ) found
    order by found.urgency, found.run_at, found.job_id
    limit $5
), taken as (
    delete from ready r using picked p where r.ctid = p.place
    returning r.job_id, gen_random_uuid() as lease_id
), running as (
    update jobs j
    set state = 'running', attempt = j.attempt + 1, fence = j.fence + 1, worker_id = $6,
        started_at = now(), updated_at = now()
    from taken t
    where j.job_id = t.job_id
    returning t.lease_id, j.job_id, j.fence, j.job_type, j.tenant, j.payload, j.attempt,
        j.max_attempts, j.interruptions, j.timeout, j.checkpoint, j.trace_parent, j.trace_state,
        j.created_at, j.priority, j.run_at
), leased as (
    insert into leases (job_id, lease_id, fence, worker_id, claimed_at, expires_at)
    select job_id, lease_id, fence, $6, now(), now() + $7::interval from running
)
select job_id, lease_id, fence, job_type, tenant, payload::text as payload, attempt, max_attempts,
    interruptions, timeout, checkpoint::text as checkpoint, trace_parent, trace_state,
    created_at, priority, run_at
from running
order by priority desc, run_at, job_id;

-- Claim up to $6 jobs for worker $7: queued -> running.
-- $1..$5 are the ranges of the queue to search. Each is of one job type and goes from
-- a position in one urgency up to, but not including, another urgency. The ranges
-- leave out parts that are known to be claimed. While an old snapshot blocks vacuum,
-- these contain only dead index entries, and may contain many.
-- $10 says how many jobs of each range to claim, at most: $6 if they are all of one type, and
-- otherwise what shares.sql has found, so that no row is locked but not claimed. A range
-- with 0 must be empty: otherwise, nothing is locked or claimed.
-- $9 contains enough new lease ids: gen_random_uuid would take a tenth of the time.
-- Clock: the lease $8 starts at the moment of the claim, clock_timestamp(). now() is
-- earlier than what the claim sees, and may be earlier than the end of the previous
-- attempt.
-- Locks: ready rows, each range in key order, skipping those that another claimer
-- holds. The ledger needs no lock: a statement that changes the columns read here first
-- moves the job's ready row. MATERIALIZED stops the planner from running a LIMIT again,
-- which would claim too many. A join with the rows to delete would take twice as long as
-- an array of their places.
-- OFFSET 0 stops it from reading the whole ledger if nothing was queued when it was last
-- analyzed.
-- Order: in each range by urgency, position, creation. The position is the due time, unless
-- the job has a turn. The ranges of a type are in order, and are read one after the other
-- until there are enough jobs. The jobs are returned in any order.
-- Fence: one more than the ledger's. The ledger gets it, and the attempt, when the
-- lease ends: from its owner, or from a reaper if the job killed its owner.
-- Index: ready_pkey for each range, for those with 0 first; jobs_pkey;
-- unsuccessful_attempts_pkey for jobs that are traced and tried again, as subqueries: a
-- join would read it for all jobs.
with ranges as (
    select *
    from unnest($1::text[], $2::smallint[], $3::timestamptz[], $4::uuid[], $5::integer[], $10::integer[])
        as s (job_type, urgency, run_at, job_id, until, jobs)
), picked as materialized (
    select found.at
    from ranges s
    cross join lateral (
        select r.ctid as at
        from ready r
        where r.job_type = s.job_type and r.urgency < s.until
            and (r.urgency, r.run_at, r.job_id) >= (s.urgency, s.run_at, s.job_id)
        order by r.urgency, r.run_at, r.job_id
        limit s.jobs for update skip locked
    ) found
    where not exists (
        select from ranges empty
        cross join lateral (
            select from ready r
            where r.job_type = empty.job_type and r.urgency < empty.until
                and (r.urgency, r.run_at, r.job_id) >= (empty.urgency, empty.run_at, empty.job_id)
            limit 1
        ) waiting
        where empty.jobs = 0
    )
    limit $6
), taken as (
    delete from ready r where r.ctid = any (array(select at from picked))
    returning r.job_id, r.run_at, r.admitted_at
), numbered as (
    select ($9::uuid[])[row_number() over ()] as lease_id, t.* from taken t
), claimed as materialized (
    select t.lease_id, clock_timestamp() as claimed_at, nullif(t.run_at, ledger.run_at) as position, t.admitted_at, ledger.*
    from numbered t
    cross join lateral (
        select j.job_id, j.fence + 1 as fence, j.job_type, j.tenant, j.payload, j.attempt + 1 as attempt,
            j.max_attempts, j.interruptions, j.crashes, j.timeout, j.checkpoint, j.trace_parent, j.trace_state,
            j.created_at, j.priority, j.run_at, j.gates, j.expires_at, j.followed,
            case when j.fence > 0 and j.trace_parent <> '' then (
                select a.ended_at from unsuccessful_attempts a where a.job_id = j.job_id and a.fence = j.fence
            ) end as last_ended_at,
            case when j.fence > 0 and j.trace_parent <> '' then (
                select a.outcome::text from unsuccessful_attempts a where a.job_id = j.job_id and a.fence = j.fence
            ) end as last_outcome
        from jobs j
        where j.job_id = t.job_id and j.state = 'queued'
        offset 0
    ) ledger
), leased as (
    insert into leases (job_id, lease_id, fence, worker_id, claimed_at, expires_at)
    select job_id, lease_id, fence, $7, claimed_at, claimed_at + $8::interval from claimed
)
select job_id, lease_id, fence, job_type, tenant, payload::text as payload, attempt, max_attempts,
    interruptions, crashes, timeout, checkpoint::text as checkpoint, trace_parent, trace_state,
    created_at, priority, run_at, position, admitted_at, gates, expires_at, followed, claimed_at, last_ended_at, last_outcome
from claimed;

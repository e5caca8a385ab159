-- Claim up to $6 jobs for worker $7: queued -> running.
-- $1..$5 are stretches of the order to look through, each of one job type: from
-- a place in an urgency on, up to an urgency that is not part of it. The
-- stretches leave out what is known to be claimed already, because that may be
-- nothing but dead index entries while an old snapshot keeps vacuum away.
-- $9 are as many new lease ids: gen_random_uuid would take a tenth of the time.
-- Clock: the lease $8 runs from the moment of the claim. The earlier now() is before
-- what the claim sees, and so may be before the end of the attempt before.
-- Locks: ready rows, each stretch in key order, skipping those that another
-- claimer holds. Whoever changes what is read of a ledger row moves its ready row
-- first, so that the ledger needs no lock. A first look without locks tells how
-- many jobs of each stretch are among the most urgent $6 of all, so that no row
-- is locked that is not claimed. The stretches of one type are in order, and are
-- read one after the other for as long as it takes: nothing is to be shared out,
-- which saves a tenth. MATERIALIZED, or the planner may run a LIMIT again and claim
-- too many.
-- OFFSET 0, or a ledger in which nothing was queued when it was last analysed is
-- read whole.
-- Order: urgency, due time, creation.
-- Fence: one more than the ledger's, which learns of it, and of the attempt, when
-- the lease ends: by its owner, or by a reaper for a job that has killed it.
-- Index: ready_pkey for each stretch, twice where there are several types; jobs_pkey;
-- unsuccessful_attempts_pkey for jobs that are traced and tried again: no join, or it
-- is read for all.
with stretches as (
    select *
    from unnest($1::text[], $2::smallint[], $3::timestamptz[], $4::uuid[], $5::integer[])
        as s (job_type, urgency, run_at, job_id, until)
), shares as materialized (
    select s.*, $6::bigint as jobs
    from stretches s
    where (select count(distinct job_type) from stretches) = 1
    union all
    select first.*, count(*) as jobs
    from (
        select s.*
        from stretches s
        cross join lateral (
            select r.urgency, r.run_at, r.job_id
            from ready r
            where r.job_type = s.job_type and r.urgency < s.until
                and (r.urgency, r.run_at, r.job_id) >= (s.urgency, s.run_at, s.job_id)
            order by r.urgency, r.run_at, r.job_id
            limit $6
        ) waiting
        where (select count(distinct job_type) from stretches) > 1
        order by waiting.urgency, waiting.run_at, waiting.job_id
        limit $6
    ) first
    group by first.job_type, first.urgency, first.run_at, first.job_id, first.until
), picked as materialized (
    select found.place
    from shares s
    cross join lateral (
        select r.ctid as place
        from ready r
        where r.job_type = s.job_type and r.urgency < s.until
            and (r.urgency, r.run_at, r.job_id) >= (s.urgency, s.run_at, s.job_id)
        order by r.urgency, r.run_at, r.job_id
        limit s.jobs for update skip locked
    ) found
    limit $6
), taken as (
    delete from ready r using picked p where r.ctid = p.place
    returning r.job_id
), claimed as materialized (
    select ($9::uuid[])[row_number() over ()] as lease_id, clock_timestamp() as claimed_at, ledger.*
    from taken t
    cross join lateral (
        select j.job_id, j.fence + 1 as fence, j.job_type, j.tenant, j.payload, j.attempt + 1 as attempt,
            j.max_attempts, j.interruptions, j.crashes, j.timeout, j.checkpoint, j.trace_parent, j.trace_state,
            j.created_at, j.priority, j.run_at,
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
    created_at, priority, run_at, claimed_at, last_ended_at, last_outcome
from claimed
order by priority desc, run_at, job_id;

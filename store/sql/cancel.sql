-- Cancel a job: created | queued | retry -> canceled at once. For a running job,
-- the request is left on its lease, where the owner finds it. A job is in only one
-- list, so at most one branch does anything. If none does, the job is final or has
-- just moved, and the caller looks again. 'freed' says that slots of its gates are free,
-- 'followed' that the follower has something to do.
-- Clock: now().
-- Locks: the list row, then the ledger row.
-- Index: jobs_pkey; ready_pkey, or ready_turn for a job with a turn, whose position the
-- ledger does not have; parked_pkey, timers_pkey, leases_pkey.
with target as (
    select job_type, priority, run_at from jobs where job_id = $1
), unqueued as (
    delete from ready r
    where r.job_type = (select job_type from target) and r.urgency = (select -priority from target)
        and r.run_at = (select run_at from target) and r.job_id = $1 and r.turn is not true
    returning r.job_id
), turned_away as (
    delete from ready r where r.job_id = $1 and r.turn
    returning r.job_id
), unparked as (
    delete from parked p where p.job_id = $1
    returning p.job_id
), unscheduled as (
    delete from timers t where t.job_id = $1
    returning t.job_id
), asked as (
    update leases l set cancel_requested = true where l.job_id = $1
    returning l.job_id
), canceled as (
    update jobs j
    set state = 'canceled', finished_at = now(), updated_at = now()
    from (
        select job_id, true as ready from unqueued
        union all
        select job_id, true from turned_away
        union all
        select job_id, false from unparked
        union all
        select job_id, false from unscheduled
    ) freed
    where j.job_id = freed.job_id
    returning j.job_id, j.job_type, j.attempt, j.followed, case when freed.ready then j.gates end as gates
), woken as (
    insert into wakes (gates, freed)
    select gates, true from canceled where gates is not null
    returning freed
), told as (
    insert into ends (job_id, state, at)
    select job_id, 'canceled', now() from canceled where followed
    returning job_id
), tallied as (
    insert into tallies (slot, job_type, worker_id, event, attempt, jobs, seconds)
    select date_bin('10 seconds', now(), 'epoch'), job_type, '', 'withdrawn', attempt, 1, 0
    from canceled
)
select 'canceled' as done from canceled
union all
select 'requested' from asked
union all
select 'freed' from woken
union all
select 'followed' from told;

-- Cancel those of the jobs $1 that wait for their time, for the reasons $2: created | retry ->
-- canceled. $3 says whether those after them in their workflow go on.
-- Clock: now().
-- Locks: timer rows in the order of the jobs, then ledger rows.
-- Index: timers_pkey, jobs_pkey, workflow_jobs_pkey.
with waiting as materialized (
    select t.job_id, d.reason, d.skipped
    from (
        select * from unnest($1::uuid[], $2::text[], $3::boolean[]) as i (job_id, reason, skipped) order by job_id
    ) d
    cross join lateral (select l.job_id from timers l where l.job_id = d.job_id for update) t
), unscheduled as (
    delete from timers t using waiting w where t.job_id between w.job_id and w.job_id
    returning t.job_id, w.reason, w.skipped
), canceled as (
    update jobs j
    set state = 'canceled', finished_at = now(), updated_at = now(), last_error = u.reason
    from unscheduled u
    where j.job_id between u.job_id and u.job_id
    returning j.job_id, j.job_type, j.attempt, j.followed, u.skipped
), told as (
    insert into ends (job_id, state, at)
    select job_id, 'canceled', now() from canceled where followed
), tallied as (
    insert into tallies (slot, job_type, worker_id, event, attempt, jobs, seconds)
    select date_bin('10 seconds', now(), 'epoch'), job_type, '', 'withdrawn', attempt, count(*), 0
    from canceled
    group by job_type, attempt
), marked as (
    update workflow_jobs wj set skipped = true from canceled c where wj.job_id between c.job_id and c.job_id and c.skipped
)
select job_id from canceled;

-- Cancel parked jobs, with the reasons $2, because their concurrency key is full:
-- queued -> canceled.
-- Clock: clock_timestamp(), which is later than the wait for the admitter's lock. now() may
-- be earlier than the submission.
-- Locks: parked rows, which the caller has locked already, then ledger rows.
-- Index: parked_pkey, jobs_pkey.
with batch as (
    select *
    from unnest($1::uuid[], $2::text[]) as b (job_id, reason)
), taken as (
    delete from parked p using batch b
    where p.job_id between b.job_id and b.job_id
    returning b.*
), canceled as (
    update jobs j
    set state = 'canceled', last_error = t.reason, finished_at = clock_timestamp(), updated_at = clock_timestamp()
    from taken t
    where j.job_id = t.job_id
    returning j.job_id, j.job_type, j.attempt, j.followed
), told as (
    insert into ends (job_id, state, at)
    select job_id, 'canceled', clock_timestamp() from canceled where followed
)
insert into tallies (slot, job_type, worker_id, event, attempt, jobs, seconds)
select date_bin('10 seconds', now(), 'epoch'), job_type, '', 'withdrawn', attempt, count(*), 0
from canceled
group by job_type, attempt;

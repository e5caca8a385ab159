-- Add up to $1 rows of the inbox to the totals, and return how many. One process works
-- at a time; others do nothing meanwhile.
-- Clock: none; the rows have their slot.
-- Locks: an advisory lock of the transaction, so that only one locks the totals.
-- Index: none on the inbox, which is read whole; the primary keys of the totals.
with pending as materialized (
    select ctid as at
    from tallies
    where (select pg_try_advisory_xact_lock(4653010))
    limit $1 for update skip locked
), taken as (
    delete from tallies t where t.ctid = any (array(select at from pending))
    returning t.*
), totals as (
    insert into tally_totals as t (job_type, event, jobs, seconds)
    select job_type, event, sum(jobs), sum(seconds) from taken group by job_type, event
    on conflict (job_type, event) do update
    set jobs = t.jobs + excluded.jobs, seconds = t.seconds + excluded.seconds
), slots as (
    insert into tally_slots as t (slot, job_type, event, jobs)
    select slot, job_type, event, sum(jobs) from taken group by slot, job_type, event
    on conflict (slot, job_type, event) do update set jobs = t.jobs + excluded.jobs
), workers as (
    insert into tally_workers as t (worker_id, event, jobs)
    select worker_id, event, sum(jobs) from taken where worker_id <> '' group by worker_id, event
    on conflict (worker_id, event) do update set jobs = t.jobs + excluded.jobs
), attempts as (
    insert into tally_attempts as t (attempt, jobs)
    select attempt, sum(case event when 'requeued' then -jobs else jobs end)
    from taken
    where event in ('succeeded', 'dead', 'canceled', 'withdrawn', 'requeued')
    group by attempt
    on conflict (attempt) do update set jobs = t.jobs + excluded.jobs
)
select count(*) from taken;

-- Merge slots of ten seconds that are older than a quarter of an hour into slots of
-- a minute. The slot of a minute starts with it.
-- Clock: now().
-- Locks: an advisory lock of the transaction, the same as roll_up_tallies.
-- Index: tally_slots_pkey.
with fine as (
    delete from tally_slots
    where slot >= now() - interval '1 hour' and slot < now() - interval '15 minutes'
        and slot <> date_trunc('minute', slot) and (select pg_try_advisory_xact_lock(4653010))
    returning *
)
insert into tally_slots as t (slot, job_type, event, jobs)
select date_trunc('minute', slot), job_type, event, sum(jobs)
from fine
group by 1, job_type, event
on conflict (slot, job_type, event) do update set jobs = t.jobs + excluded.jobs;

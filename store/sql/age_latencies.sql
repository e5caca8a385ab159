-- Merge slots of ten seconds that are older than a quarter of an hour into slots of
-- a minute, as age_tallies does, and delete those that are too old for any window.
-- Clock: now().
-- Locks: an advisory lock of the transaction, the same as roll_up_tallies.
-- Index: latency_slots_pkey.
with old as (
    delete from latency_slots
    where slot < now() - interval '25 hours' and (select pg_try_advisory_xact_lock(4653010))
), fine as (
    delete from latency_slots
    where slot >= now() - interval '1 hour' and slot < now() - interval '15 minutes'
        and slot <> date_trunc('minute', slot) and (select pg_try_advisory_xact_lock(4653010))
    returning date_trunc('minute', slot) as minute, job_type, waits, runs
), cells as (
    select minute, job_type, true as waited, n, sum(jobs)::bigint as jobs
    from fine
    cross join unnest(waits) with ordinality as u (jobs, n)
    group by minute, job_type, n
    union all
    select minute, job_type, false, n, sum(jobs)::bigint
    from fine
    cross join unnest(runs) with ordinality as u (jobs, n)
    group by minute, job_type, n
)
insert into latency_slots as l (slot, job_type, waits, runs)
select minute, job_type,
    coalesce(array_agg(jobs order by n) filter (where waited), '{}'),
    coalesce(array_agg(jobs order by n) filter (where not waited), '{}')
from cells
group by minute, job_type
on conflict (slot, job_type) do update
set waits = array(
        select coalesce(a, 0) + coalesce(b, 0)
        from unnest(l.waits, excluded.waits) with ordinality as u (a, b, n)
        order by n
    ),
    runs = array(
        select coalesce(a, 0) + coalesce(b, 0)
        from unnest(l.runs, excluded.runs) with ordinality as u (a, b, n)
        order by n
    );

-- The waiting, running and dead jobs of each type: all types that have an open or dead
-- job, or that a live worker serves.
-- A job at a gate is queued, but has no age: nobody may claim it. The age of the oldest
-- counts from when a ready job was due, or had passed its gates.
-- Clock: now().
-- Index: ready, parked, timers, leases and dead_letters are read whole; each running job's
-- ledger row by jobs_pkey.
select job_type, sum(queued)::bigint as queued,
    extract(epoch from greatest(now() - coalesce(min(due), now()), interval '0'))::float8 as oldest_queued_seconds,
    sum(scheduled)::bigint as scheduled, sum(held)::bigint as held, sum(retrying)::bigint as retrying,
    sum(running)::bigint as running, sum(dead)::bigint as dead, bool_or(served) as served
from (
    select job_type, count(*) as queued,
        min(coalesce(admitted_at, run_at)) as due,
        0 as scheduled, 0 as held, 0 as retrying, 0 as running, 0 as dead, false as served
    from ready
    group by job_type
    union all
    select job_type, count(*), null, 0, 0, 0, 0, 0, false
    from parked
    group by job_type
    union all
    select job_type, 0, null,
        count(*) filter (where state = 'created' and run_at < 'infinity'),
        count(*) filter (where state = 'created' and run_at = 'infinity'),
        count(*) filter (where state = 'retry'), 0, 0, false
    from timers
    group by job_type
    union all
    select job_type, 0, null, 0, 0, 0, count(*), 0, false
    from (select (select j.job_type from jobs j where j.job_id = l.job_id) as job_type from leases l) running
    group by job_type
    union all
    select job_type, 0, null, 0, 0, 0, 0, count(*), false
    from dead_letters
    group by job_type
    union all
    select kind, 0, null, 0, 0, 0, 0, 0, true
    from workers w
    cross join json_array_elements(case json_typeof(w.plugins) when 'array' then w.plugins else '[]' end) pool
    cross join json_array_elements_text(
        case json_typeof(pool -> 'jobTypes') when 'array' then pool -> 'jobTypes' else '[]' end) kind
    where w.stopped_at is null and w.alive_until > now()
) parts
group by job_type
order by job_type;

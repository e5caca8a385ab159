-- The jobs that wait, run or are dead, by type, state and the attempts that they were charged;
-- parked ones also by what they wait for: a rate, if the admitter will look at the lane at a
-- certain time; otherwise a slot, or their turn. Each list is read once for all figures.
-- A job at a gate is queued, but has no age: nobody may claim it. The age of the oldest
-- counts from when a ready job was due, or had passed its gates.
-- Clock: now().
-- Index: ready, parked, timers, leases and dead_letters are read whole, once; slots by
-- slots_wake_at; each running job's ledger row by jobs_pkey.
select job_type, 'queued' as state, false as held, attempt, '' as reason, count(*) as jobs,
    extract(epoch from greatest(now() - min(coalesce(admitted_at, run_at)), interval '0'))::float8 as oldest_seconds
from ready
group by job_type, attempt
union all
select job_type, 'queued', false, attempt, reason, count(*), 0
from (
    select job_type, attempt,
        case
            when lane in (select gate from slots where wake_at is not null) then 'rate'
            when lane like 'key:%' then 'concurrency_key'
            when lane like 'tenant:%' then 'concurrency_tenant'
            when lane like 'type:%' then 'concurrency_type'
            when lane like 'paused:%' or lane like 'stopped:%' then 'paused'
            else 'turn'
        end as reason
    from parked
) waiting
group by job_type, attempt, reason
union all
select job_type, state::text, run_at = 'infinity', attempt, '', count(*), 0
from timers
group by job_type, state, run_at = 'infinity', attempt
union all
select running.job_type, 'running', false, running.attempt + 1, '', count(*), 0
from leases l
cross join lateral (select j.job_type, j.attempt from jobs j where j.job_id = l.job_id offset 0) running
group by running.job_type, running.attempt
union all
select job_type, 'dead', false, 0, '', count(*), 0
from dead_letters
group by job_type;

-- How many jobs have been charged so many attempts.
-- Index: the narrow lists read whole; jobs_pkey for those that run.
select attempt, sum(jobs) as jobs
from (
    select attempt, count(*) as jobs from ready group by attempt
    union all
    select attempt, count(*) from timers group by attempt
    union all
    select j.attempt, count(*) from leases l join jobs j on j.job_id = l.job_id group by j.attempt
    union all
    select attempt, jobs from tally_attempts
    union all
    select attempt, case event when 'requeued' then -jobs else jobs end
    from tallies
    where event in ('succeeded', 'dead', 'canceled', 'withdrawn', 'requeued')
) known
group by attempt
having sum(jobs) <> 0;

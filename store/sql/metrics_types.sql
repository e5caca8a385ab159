-- Attempts that failed and that succeeded, by job type, and how long the latter took.
-- Index: tally_totals is read whole.
select job_type,
    coalesce(sum(jobs) filter (where event in ('failed', 'dead')), 0) as failures,
    coalesce(sum(jobs) filter (where event = 'succeeded'), 0) as successes,
    coalesce(sum(seconds) filter (where event = 'succeeded'), 0) as seconds
from (
    select job_type, event, jobs, seconds from tally_totals
    union all
    select job_type, event, jobs, seconds from tallies
) known
group by job_type;

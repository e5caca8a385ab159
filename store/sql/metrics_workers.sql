-- How many jobs each worker runs, and how many it has ended in each final state.
-- Index: leases and tally_workers are read whole.
select worker_id, 'running' as state, count(*) as jobs from leases group by worker_id
union all
select worker_id, event::text, sum(jobs)
from (
    select worker_id, event, jobs from tally_workers
    union all
    select worker_id, event, jobs from tallies where worker_id <> ''
) known
where event in ('succeeded', 'dead', 'canceled')
group by worker_id, event;

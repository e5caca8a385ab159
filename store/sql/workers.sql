-- The workers that are known, the newest first, and how many jobs each runs.
-- Clock: now().
-- Index: none; a handful of workers, and leases is read whole, which is small.
select w.worker_id, w.host, w.pid,
    case
        when w.stopped_at is not null then 'stopped'
        when w.alive_until > now() then 'alive'
        else 'silent'
    end as condition,
    w.started_at, w.heartbeat_at, w.stopped_at, w.plugins::text as plugins,
    coalesce(held.jobs, 0) as running
from workers w
left join (select worker_id, count(*) as jobs from leases group by worker_id) held
    on held.worker_id = w.worker_id
order by w.started_at desc, w.worker_id;

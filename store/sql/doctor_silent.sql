-- Workers that stopped sending heartbeats and still hold leases, the longest silent
-- first.
-- Clock: now().
-- Index: none; a handful of workers, and leases is read whole, but it is small.
select w.worker_id, now() - w.alive_until as silent, held.leases
from workers w
join (select worker_id, count(*) as leases from leases group by worker_id) held
    on held.worker_id = w.worker_id
where w.stopped_at is null and w.alive_until <= now()
order by w.alive_until, w.worker_id;

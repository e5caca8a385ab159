-- All known workers, newest first.
-- Clock: now().
-- Index: none; a handful of workers.
select worker_id, host, pid, roles,
    case
        when stopped_at is not null then 'stopped'
        when alive_until <= now() then 'silent'
        when drained_at is not null then 'drained'
        when drain_asked_at is not null then 'draining'
        else 'alive'
    end as condition,
    started_at, heartbeat_at as last_heartbeat, stopped_at, plugins::text as plugins
from workers
order by started_at desc, worker_id;

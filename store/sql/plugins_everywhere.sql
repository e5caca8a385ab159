-- The plugins of all workers that run any and have not stopped.
-- Clock: now().
-- Index: none; a handful of workers.
select w.worker_id, w.host,
    case
        when w.alive_until <= now() then 'silent'
        when w.drained_at is not null then 'drained'
        when w.drain_asked_at is not null then 'draining'
        else 'alive'
    end as condition,
    w.heartbeat_at as last_heartbeat, s.described_at, s.plugins::text as plugins
from workers w
left join plugin_status s on s.worker_id = w.worker_id
where w.stopped_at is null and 'worker' = any(w.roles)
order by w.host, w.started_at, w.worker_id;

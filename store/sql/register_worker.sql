-- Record that worker $1 has started with the roles $6, and counts as alive for $2. Workers whose last
-- heartbeat is more than a day old are deleted.
-- Clock: now().
-- Locks: its own row and those deleted.
-- Index: workers_pkey.
with forgotten as (
    delete from workers where alive_until < now() - interval '1 day' and worker_id <> $1
)
insert into workers (worker_id, alive_until, host, pid, pid_started, roles)
values ($1, now() + $2::interval, $3, $4, $5, $6::text[])
on conflict (worker_id) do update
set alive_until = excluded.alive_until, heartbeat_at = now(), stopped_at = null;

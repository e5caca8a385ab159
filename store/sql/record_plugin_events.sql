-- Record events of plugins of worker $1 on host $2. $4 is how long ago each of them was. One
-- whose id is there already was written before.
-- Clock: now().
-- Locks: the rows that it writes.
-- Index: plugin_events_pkey.
insert into plugin_events
    (event_id, at, worker_id, host, plugin, event, version, digest, trigger, actor, reason, count, details)
select e.event_id, now() - e.ago, $1, $2, e.plugin, e.event, e.version, e.digest, e.trigger, e.actor, e.reason, e.count,
    e.details::json
from unnest(
    $3::uuid[], $4::interval[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[],
    $12::integer[], $13::text[]
) as e (event_id, ago, plugin, event, version, digest, trigger, actor, reason, count, details)
on conflict (event_id) do nothing;

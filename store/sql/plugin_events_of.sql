-- The same for the plugin $6.
-- Index: plugin_events_plugin.
select event_id as id, at, worker_id as worker, host, plugin, event, version, digest, trigger, actor, reason, count,
    details::text as details
from plugin_events
where (at, event_id) < (coalesce($4::timestamptz, 'infinity'), coalesce($5::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
    and ($2::text = '' or worker_id = $2) and ($3::text = '' or event = $3) and plugin = $6
order by at desc, event_id desc
limit $1;

-- Up to $1 events of plugins, newest first: of worker $2 and kind $3 unless these are empty,
-- before the position $4, $5 unless it is null.
-- Index: plugin_events_at.
select event_id as id, at, worker_id as worker, host, plugin, event, version, digest, trigger, actor, reason, count,
    details::text as details
from plugin_events
where (at, event_id) < (coalesce($4::timestamptz, 'infinity'), coalesce($5::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
    and ($2::text = '' or worker_id = $2) and ($3::text = '' or event = $3)
order by at desc, event_id desc
limit $1;

-- Up to $2 events after the id $1, oldest first, each with the last id that was given. If
-- there are none, one row has that id alone.
-- Index: events_pkey.
select l.id as last, e.*
from last_event l
left join lateral (
    select id, at, job_id, job_type as type, tenant, tags, state::text as state
    from events
    where id > $1
    order by id
    limit $2
) e on true
order by e.id;

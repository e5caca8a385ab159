-- The backends in $1 that are working on a statement, or waiting for a lock or a
-- standby. Those that wait for their client are not.
-- Index: none; pg_stat_activity.
select pid
from pg_stat_activity
where pid = any($1::integer[]) and state = 'active' and wait_event_type is distinct from 'Client';

-- Which of these backends are at work on a statement, or wait for a lock or for a
-- standby. One that waits for its client is not.
-- Index: none; pg_stat_activity.
select pid
from pg_stat_activity
where pid = any($1::integer[]) and state = 'active' and wait_event_type is distinct from 'Client';

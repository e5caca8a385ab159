-- End the pause of the schedule of tenant $1 and name $2, if nobody has changed it since $4:
-- its next tick is $3.
-- Locks: its own row.
-- Index: schedules_pkey.
update schedules
set paused_at = null, pause_reason = '', paused_by = '', next_at = $3::timestamptz, retry_at = null
where tenant = $1 and name = $2 and paused_at is not null and updated_at = $4
returning name;

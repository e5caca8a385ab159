-- Pause the schedule of tenant $1 and name $2. A pause keeps its beginning. It returns no
-- row if there is no such schedule.
-- Clock: now().
-- Locks: its own row.
-- Index: schedules_pkey.
update schedules
set paused_at = coalesce(paused_at, now()), pause_reason = $3, paused_by = $4, next_at = null
where tenant = $1 and name = $2
returning paused_at;

-- Delete the schedule of tenant $1 and name $2, unless the configuration has set it. deleted
-- is false then.
-- Locks: its own row.
-- Index: schedules_pkey.
with found as (
    select configured from schedules where tenant = $1 and name = $2 for update
), deleted as (
    delete from schedules where tenant = $1 and name = $2 and not configured
)
select not configured as deleted from found;

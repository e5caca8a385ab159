-- Schedules whose latest tick could make no job, and those whose next tick should have been
-- fired more than $1 ago, the longest overdue first; at most $2.
-- Clock: now().
-- Index: none; schedules are read whole.
select tenant || '/' || name as schedule, coalesce(now() - next_at, interval '0') as overdue,
    coalesce(last_error, '') as failure
from schedules
where next_at < now() - $1::interval or last_error is not null and (next_at is not null or paused_at is null)
order by next_at, schedule
limit $2;

-- All limits and all pauses, and workers that are drained. expired says of a pause that it is
-- over, and waits to be ended.
-- Clock: now().
-- Index: none needed; a handful of rows.
select false as is_pause, scope, name, concurrency, rate, period, burst, on_conflict, weight, fair, configured,
    '' as reason, updated_by as by, updated_at as since, null::timestamptz as until, false as drain, false as expired
from limits
union all
select true, scope, name, null, null, null, null, null, null, false, false,
    reason, paused_by, since, until, drain, coalesce(until <= now(), false)
from pauses
union all
select true, 'worker', worker_id, null, null, null, null, null, null, false, false,
    '', '', drain_asked_at, null, true, false
from workers
where drain_asked_at is not null and stopped_at is null
order by is_pause, scope, name;

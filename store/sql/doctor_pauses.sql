-- What operators have stopped: pauses, and limits that let nothing run, the oldest first.
-- Clock: now().
-- Index: none; pauses and limits are read whole, but they are small.
select scope || coalesce(' ' || nullif(name, ''), '') as what, true as pause, now() - since as lasted,
    paused_by as by, reason, until is not null as ends
from pauses
where until is null or until > now()
union all
select scope || ' ' || name, false, now() - updated_at, updated_by, '', false
from limits
where concurrency = 0
order by lasted desc, what;

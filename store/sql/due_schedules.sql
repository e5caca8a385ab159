-- Take up to $1 schedules of which a tick is due, the one that has waited for longest first.
-- The caller fires their ticks and moves them on, in the same transaction. The rows are as
-- they were locked, which may be newer than the snapshot; so ask for their last jobs after.
-- Clock: now(), which is also returned.
-- Locks: schedules, the longest due first, skipping locked ones.
-- Index: schedules_look_at.
select tenant, name, cron, zone, every, anchor, once_at, starts_at, ends_at, jitter, overlap, catch_up, catch_up_window, job,
    next_at, paused_at, paused_by, pause_reason, last_tick, last_job, last_error, last_error_at, fired, skipped, missed, failed,
    configured, created_at, updated_by, updated_at, now() as now
from schedules
where look_at <= now()
order by look_at
limit $1 for update skip locked;

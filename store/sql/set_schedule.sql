-- Set the schedule of tenant $1 and name $2. It returns no row, and changes nothing, if the
-- configuration has set that schedule. The next tick stays what it is, unless the timing
-- changes; a paused schedule stays paused.
-- Clock: now().
-- Locks: its own row.
-- Index: schedules_pkey.
insert into schedules as s (
    tenant, name, cron, zone, every, anchor, once_at, starts_at, ends_at, jitter, overlap, catch_up, catch_up_window, job,
    next_at, updated_by
)
values ($1, $2, $3, $4, $5::interval, $6::timestamptz, $7::timestamptz, $8::timestamptz, $9::timestamptz, $10::interval,
    $11, $12, $13::interval, $14::json, $15::timestamptz, $16)
on conflict (tenant, name) do update
set cron = excluded.cron, zone = excluded.zone, every = excluded.every, anchor = excluded.anchor, once_at = excluded.once_at,
    starts_at = excluded.starts_at, ends_at = excluded.ends_at, jitter = excluded.jitter, overlap = excluded.overlap,
    catch_up = excluded.catch_up, catch_up_window = excluded.catch_up_window, job = excluded.job,
    next_at = case
        when s.paused_at is not null then null
        when (s.cron, s.zone, s.every, s.anchor, s.once_at, s.starts_at, s.ends_at) is not distinct from (excluded.cron, excluded.zone,
            excluded.every, excluded.anchor, excluded.once_at, excluded.starts_at, excluded.ends_at) then s.next_at
        else excluded.next_at
    end,
    retry_at = null, last_error = null, last_error_at = null, updated_by = excluded.updated_by, updated_at = now()
where not s.configured
returning updated_at;

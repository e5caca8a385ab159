-- Write down what became of the ticks of schedules, and move these on to their next tick,
-- which never moves back here. A schedule that is to be tried again waits for that.
-- Clock: now().
-- Locks: schedules, which the caller has locked.
-- Index: schedules_pkey.
with moved as (
    select *
    from unnest(
        $1::text[], $2::text[], $3::timestamptz[], $4::timestamptz[], $5::uuid[], $6::text[],
        $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::timestamptz[]
    ) as m (tenant, name, next_at, last_tick, last_job, error, fired, skipped, missed, failed, retry_at)
)
update schedules s
set next_at = case when m.next_at is not null then greatest(m.next_at, s.next_at) end,
    retry_at = m.retry_at,
    last_tick = greatest(m.last_tick, s.last_tick),
    last_job = coalesce(m.last_job, s.last_job),
    last_error = case when m.error is not null then m.error when m.last_tick is null then s.last_error end,
    last_error_at = case when m.error is not null then now() when m.last_tick is null then s.last_error_at end,
    fired = s.fired + m.fired, skipped = s.skipped + m.skipped, missed = s.missed + m.missed, failed = s.failed + m.failed
from moved m
where s.tenant = m.tenant and s.name = m.name;

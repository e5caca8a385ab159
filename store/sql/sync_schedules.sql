-- Make these schedules the ones that the configuration sets. Those that somebody else has set
-- stay as they are. It returns the schedules that this removes, sets or changes, and those that
-- it leaves to others ('kept'). Next ticks are as in set_schedule.sql.
-- Clock: now().
-- Locks: schedules that are not configured any more; then the others in key order (the
-- caller sorts).
-- Index: schedules_pkey.
with given as (
    select *
    from unnest(
        $1::text[], $2::text[], $3::text[], $4::text[], $5::interval[], $6::timestamptz[], $7::timestamptz[], $8::timestamptz[],
        $9::timestamptz[], $10::interval[], $11::text[], $12::text[], $13::interval[], $14::text[], $15::timestamptz[]
    ) as g (tenant, name, cron, zone, every, anchor, once_at, starts_at, ends_at, jitter, overlap, catch_up, catch_up_window, job,
        next_at)
), removed as (
    delete from schedules s
    where s.configured and not exists (select from given g where g.tenant = s.tenant and g.name = s.name)
    returning s.tenant, s.name
), written as (
    insert into schedules as s (
        tenant, name, cron, zone, every, anchor, once_at, starts_at, ends_at, jitter, overlap, catch_up, catch_up_window, job,
        next_at, configured
    )
    select tenant, name, cron, zone, every, anchor, once_at, starts_at, ends_at, jitter, overlap, catch_up, catch_up_window,
        job::json, next_at, true
    from given
    on conflict (tenant, name) do update
    set cron = excluded.cron, zone = excluded.zone, every = excluded.every, anchor = excluded.anchor, once_at = excluded.once_at,
        starts_at = excluded.starts_at, ends_at = excluded.ends_at, jitter = excluded.jitter, overlap = excluded.overlap,
        catch_up = excluded.catch_up, catch_up_window = excluded.catch_up_window, job = excluded.job,
        next_at = case
            when s.paused_at is not null then null
            when (s.cron, s.zone, s.every, s.anchor, s.once_at, s.starts_at, s.ends_at) is not distinct from (excluded.cron,
                excluded.zone, excluded.every, excluded.anchor, excluded.once_at, excluded.starts_at, excluded.ends_at) then s.next_at
            else excluded.next_at
        end,
        retry_at = null, last_error = null, last_error_at = null, updated_by = '', updated_at = now()
    where s.configured and (s.cron, s.zone, s.every, s.anchor, s.once_at, s.starts_at, s.ends_at, s.jitter, s.overlap, s.catch_up,
            s.catch_up_window, s.job::text)
        is distinct from (excluded.cron, excluded.zone, excluded.every, excluded.anchor, excluded.once_at, excluded.starts_at,
            excluded.ends_at, excluded.jitter, excluded.overlap, excluded.catch_up, excluded.catch_up_window, excluded.job::text)
    returning s.tenant, s.name
)
select tenant, name, 'deleted' as done from removed
union all
select tenant, name, 'set' from written
union all
select g.tenant, g.name, 'kept'
from given g
join schedules s on s.tenant = g.tenant and s.name = g.name
where not s.configured;

-- Pause what has name $2 in scope $1: until $5 or, if $6 is given, for that long from now. A
-- pause that is not over keeps its beginning.
-- Clock: now().
-- Locks: its own row.
-- Index: pauses_pkey.
insert into pauses as p (scope, name, reason, paused_by, until, drain)
values ($1, $2, $3, $4, coalesce(now() + $6::interval, $5::timestamptz), $7)
on conflict (scope, name) do update
set reason = excluded.reason, paused_by = excluded.paused_by, until = excluded.until, drain = excluded.drain,
    since = case when p.until <= now() then excluded.since else p.since end
returning since, until;

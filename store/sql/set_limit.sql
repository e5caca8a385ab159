-- Set the limit of name $2 in scope $1. It returns no row, and changes nothing, if the
-- configuration has set that limit.
-- Clock: now().
-- Locks: its own row.
-- Index: limits_pkey.
insert into limits as l (
    scope, name, concurrency, rate, period, burst, on_conflict, weight, fair, updated_by
)
values ($1, $2, $3::integer, $4::integer, $5::interval, $6::integer, $7, $8::integer, $9, $10)
on conflict (scope, name) do update
set concurrency = excluded.concurrency, rate = excluded.rate, period = excluded.period, burst = excluded.burst,
    on_conflict = excluded.on_conflict, weight = excluded.weight, fair = excluded.fair,
    updated_by = excluded.updated_by, updated_at = now()
where not l.configured
returning updated_at;

-- Make these limits the ones that the configuration sets. It returns the limits that this
-- removes, sets or changes.
-- Clock: now().
-- Locks: limits that are not configured any more; then the others in key order (the
-- caller sorts).
-- Index: limits_pkey.
with given as (
    select *
    from unnest(
        $1::text[], $2::text[], $3::integer[], $4::integer[], $5::interval[], $6::integer[], $7::text[], $8::integer[],
        $9::boolean[]
    ) as g (scope, name, concurrency, rate, period, burst, on_conflict, weight, fair)
), removed as (
    delete from limits l
    where l.configured and not exists (select from given g where g.scope = l.scope and g.name = l.name)
    returning l.scope, l.name
), written as (
    insert into limits as l (
        scope, name, concurrency, rate, period, burst, on_conflict, weight, fair, configured
    )
    select scope, name, concurrency, rate, period, burst, on_conflict, weight, fair, true from given
    on conflict (scope, name) do update
    set concurrency = excluded.concurrency, rate = excluded.rate, period = excluded.period, burst = excluded.burst,
        on_conflict = excluded.on_conflict, weight = excluded.weight, fair = excluded.fair,
        configured = true, updated_by = '', updated_at = now()
    where (l.concurrency, l.rate, l.period, l.burst, l.on_conflict, l.weight, l.fair, l.configured)
        is distinct from (excluded.concurrency, excluded.rate, excluded.period, excluded.burst,
            excluded.on_conflict, excluded.weight, excluded.fair, true)
    returning l.scope, l.name
)
select scope, name, true as removed from removed
union all
select scope, name, false from written;

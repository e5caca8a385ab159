-- How much the admitter has to look at, counted up to 10000 rows, and the used slots of the
-- types and tenants that have a limit of their own, up to $1 of them, types first.
-- Index: limits and wakes are read whole, but they are small; slots_pkey.
select scope, name, used, slots, (select count(*) from (select from wakes limit 10000) inbox) as inbox
from (select) once
left join lateral (
    select l.scope, l.name, l.concurrency as slots,
        coalesce((select s.used from slots s where s.gate = l.scope || ':' || l.name), 0) as used
    from limits l
    where l.scope in ('type', 'tenant') and l.name <> '*' and l.concurrency is not null
    order by l.scope desc, l.name
    limit $1
) l on true;

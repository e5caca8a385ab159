-- Wake the lanes that the limits of names $2 in scopes $1 bound, because these have changed. For
-- a class of keys, or for '*', it looks through all lanes, skipping from one to the next: with
-- 100,000 lanes that takes about half a second.
-- Locks: none.
-- Index: parked_order.
with recursive changed as (
    select scope, name from unnest($1::text[], $2::text[]) as c (scope, name)
), lanes as (
    (
        select lane
        from parked
        where lane > '' and exists (select from changed where scope = 'key' or name = '*')
        order by lane
        limit 1
    )
    union all
    select (select p.lane from parked p where p.lane > l.lane order by p.lane limit 1)
    from lanes l
    where l.lane is not null
), woken as (
    select scope || ':' || name as lane
    from changed
    where scope in ('type', 'tenant') and name <> '*'
    union
    select l.lane
    from lanes l
    join changed c on starts_with(l.lane, c.scope || ':')
        and (c.name = '*' or c.scope = 'key' and split_part(substr(l.lane, strpos(l.lane, '/') + 1), ':', 1) = c.name)
), batched as (
    select lane, row_number() over () / 1000 as batch from woken
)
insert into wakes (gates, freed)
select array_agg(lane), false
from batched
group by batch;

-- End the pauses that are over. The lanes of tenants are woken.
-- Clock: now().
-- Locks: pauses that are over, skipping locked ones.
-- Index: pauses_pkey.
with over as (
    select scope, name from pauses where until <= now() order by scope, name for update skip locked
), ended as (
    delete from pauses p using over o where p.scope = o.scope and p.name = o.name
    returning p.scope, p.name
), woken as (
    insert into wakes (gates, freed)
    select array_agg('paused:' || name), false from ended where scope = 'tenant' having count(*) > 0
)
select scope, name from ended;

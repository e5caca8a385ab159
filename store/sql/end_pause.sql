-- End the pause of name $2 in scope $1. For a tenant, its lane is woken.
-- Locks: its own row.
-- Index: pauses_pkey.
with ended as (
    delete from pauses where scope = $1 and name = $2
    returning scope, name
), woken as (
    insert into wakes (gates, freed)
    select array['paused:' || name], false from ended where scope = 'tenant'
)
select name from ended;

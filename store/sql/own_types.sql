-- Make plugin $3 the owner of the job types $1, unless another plugin owns one of them.
-- Types whose $2 is true change their owner in any case. If two plugins claim a new type at once, the
-- first gets it: see type_owners.sql.
-- Clock: now().
-- Locks: key order (the caller sorts by type).
-- Index: type_owners_pkey.
with claimed as (
    select job_type, moved
    from unnest($1::text[], $2::boolean[]) as c (job_type, moved)
)
insert into type_owners as o (job_type, plugin)
select c.job_type, $3
from claimed c
where not exists (
    select
    from claimed other
    join type_owners held on held.job_type = other.job_type
    where held.plugin <> $3 and not other.moved
)
on conflict (job_type) do update
set plugin = excluded.plugin, since = now()
where o.plugin <> excluded.plugin
    and o.job_type in (select job_type from claimed where moved);

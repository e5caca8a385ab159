-- The types that a live worker serves, and those that are paused: with an empty name, all.
-- Clock: now().
-- Index: workers and pauses are read whole; type_owners_pkey.
with paused as (
    select scope, name from pauses where until is null or until > now()
)
select kind as job_type, true as served
from workers w
cross join json_array_elements(case json_typeof(w.plugins) when 'array' then w.plugins else '[]' end) pool
cross join json_array_elements_text(
    case json_typeof(pool -> 'jobTypes') when 'array' then pool -> 'jobTypes' else '[]' end) kind
where w.stopped_at is null and w.alive_until > now()
union
select name, false from paused where scope in ('type', 'all')
union
select o.job_type, false
from type_owners o
where o.plugin in (select name from paused where scope = 'plugin');

-- Which types are paused, and what the parked jobs of each type wait for: a rate, if the
-- admitter will look at the lane at a certain time; otherwise a slot, or their turn. A row
-- of a paused type has no jobs, and no type if everything is paused.
-- Clock: now().
-- Index: parked and pauses are read whole, and slots by slots_wake_at; type_owners_pkey.
with paused as (
    select scope, name from pauses where until is null or until > now()
)
select job_type, reason, count(*) as jobs
from (
    select job_type,
        case
            when lane in (select gate from slots where wake_at is not null) then 'rate'
            when lane like 'key:%' then 'concurrency_key'
            when lane like 'tenant:%' then 'concurrency_tenant'
            when lane like 'type:%' then 'concurrency_type'
            when lane like 'paused:%' or lane like 'stopped:%' then 'paused'
            else 'turn'
        end as reason
    from parked
) waiting
group by job_type, reason
union all
select name, 'paused', 0 from paused where scope in ('type', 'all')
union all
select o.job_type, 'paused', 0
from type_owners o
where o.plugin in (select name from paused where scope = 'plugin');

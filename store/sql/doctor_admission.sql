-- Lanes whose first job has been parked for longer than $1 although nothing keeps it there,
-- up to $2: the lane's gate has a free slot and no rate that must be waited for, or its
-- tenant or type is not paused. While everything is paused, there are none. Also gates with a rate that should have been looked at that long
-- ago.
-- Clock: now().
-- Index: parked_order; one probe for each lane, by a loose scan. slots_wake_at, slots_pkey,
-- limits_pkey, pauses_pkey.
with recursive lanes as (
    (select lane from parked where lane > '' order by lane limit 1)
    union all
    select (select p.lane from parked p where p.lane > l.lane order by p.lane limit 1)
    from lanes l
    where l.lane is not null
), firsts as (
    select l.lane, split_part(l.lane, ':', 1) as kind, substr(l.lane, strpos(l.lane, '/') + 1) as key, first.*
    from lanes l
    cross join lateral (
        select p.job_id, p.parked_at, p.capacity
        from parked p
        where p.lane = l.lane
        order by p.urgency, p.position, p.job_id
        limit 1
    ) first
    where first.parked_at < now() - $1::interval
), judged as (
    select f.lane, f.job_id, f.parked_at,
        case f.kind
            when 'paused' then not exists (
                select from pauses p
                where p.scope = 'tenant' and p.name = substr(f.lane, 8) and (p.until is null or p.until > now())
            )
            when 'stopped' then not exists (
                select from pauses p
                where p.scope = 'type' and p.name = substr(f.lane, 9) and (p.until is null or p.until > now())
            )
            when 'fair' then true
            when 'new' then true
            else s.wake_at is null
                and coalesce(s.used < coalesce(case f.kind when 'key' then f.capacity end, l.concurrency), true)
        end as free
    from firsts f
    left join slots s on s.gate = f.lane
    left join lateral (
        select concurrency
        from limits
        where f.kind in ('key', 'tenant', 'type') and scope = f.kind and name in (
                case
                    when f.kind <> 'key' then substr(f.lane, length(f.kind) + 2)
                    else split_part(f.key, ':', 1)
                end, '*')
        order by name = '*'
        limit 1
    ) l on true
)
select lane, job_id, now() - parked_at as waited
from judged
where free and not exists (select from pauses p where p.scope = 'all' and (p.until is null or p.until > now()))
union all
select gate, null, now() - wake_at
from slots
where wake_at < now() - $1::interval
order by waited desc, lane
limit $2;

-- Find parked jobs that have been due for longer than $1 behind more urgent ones of their
-- lane; see age_ready.sql. $2 and $3 are the lane and the urgency after which to go on. Lanes
-- of paused tenants and types are left out: nothing in them goes on.
-- Clock: now(). Fence: none, it only reads; edit_parked.sql checks again.
-- Locks: none.
-- Index: parked_order, once for each lane and urgency and not for each job; jobs_pkey.
with recursive queues as (
    (
        select p.lane, p.urgency, 1 as n
        from parked p
        where p.lane is not null and (p.lane, p.urgency) > ($2::text, $3::smallint)
        order by p.lane, p.urgency
        limit 1
    )
    union all
    select next.lane, next.urgency, q.n + 1
    from queues q
    cross join lateral (
        select p.lane, p.urgency
        from parked p
        where p.lane is not null and (p.lane, p.urgency) > (q.lane, q.urgency)
        order by p.lane, p.urgency
        limit 1
    ) next
    where q.n < $4
)
select q.lane as queue, q.urgency, first.urgency as most, old.job_id
from queues q
cross join lateral (
    select p.urgency from parked p where p.lane = q.lane order by p.lane, p.urgency limit 1
) first
left join lateral (
    select head.job_id
    from (
        select p.job_id, p.position, p.turn
        from parked p
        where p.lane = q.lane and p.urgency = q.urgency
        order by p.position, p.job_id
        limit $5
    ) head
    where case when head.turn then (select j.run_at from jobs j where j.job_id = head.job_id) else head.position end < now() - $1::interval
) old on q.urgency > first.urgency and q.lane not like 'paused:%' and q.lane not like 'stopped:%'
order by q.n;

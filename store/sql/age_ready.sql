-- Find ready jobs that have been due for longer than $1 behind more urgent ones of their
-- type. $2 and $3 are the type and the urgency after which to go on, $4 is how many of these
-- queues to look at, and $5 how many jobs of each, in the order in which they are claimed. A
-- queue without such jobs has a row with nulls. most is the urgency of the type's first job.
-- A job with a turn has a virtual time in the list, and its due time in the ledger.
-- Clock: now(). Fence: none, it only reads; edit_ready.sql checks again.
-- Locks: none.
-- Index: ready_pkey, once for each queue and not for each job; jobs_pkey.
with recursive queues as (
    (
        select r.job_type, r.urgency, 1 as n
        from ready r
        where (r.job_type, r.urgency) > ($2::text, $3::smallint)
        order by r.job_type, r.urgency
        limit 1
    )
    union all
    select next.job_type, next.urgency, q.n + 1
    from queues q
    cross join lateral (
        select r.job_type, r.urgency
        from ready r
        where (r.job_type, r.urgency) > (q.job_type, q.urgency)
        order by r.job_type, r.urgency
        limit 1
    ) next
    where q.n < $4
)
select q.job_type as queue, q.urgency, first.urgency as most, old.job_id
from queues q
cross join lateral (
    select r.urgency from ready r where r.job_type = q.job_type order by r.job_type, r.urgency limit 1
) first
left join lateral (
    select head.job_id
    from (
        select r.job_id, r.run_at, r.turn
        from ready r
        where r.job_type = q.job_type and r.urgency = q.urgency
        order by r.run_at, r.job_id
        limit $5
    ) head
    where case when head.turn then (select j.run_at from jobs j where j.job_id = head.job_id) else head.run_at end < now() - $1::interval
) old on q.urgency > first.urgency
order by q.n;

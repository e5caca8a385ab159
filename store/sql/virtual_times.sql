-- Read the virtual time of queues, in the order sent: what is stored, and the position of
-- the first job in the ready list from there on.
-- Clock: none. Fence: none, it only reads; the caller is the one who admits.
-- Index: turns_pkey, ready_pkey from the stored time on.
select t.start, t.finish, first.run_at
from unnest($1::text[], $2::smallint[]) with ordinality as q (job_type, urgency, nth)
left join turns t on t.job_type between q.job_type and q.job_type and t.urgency = q.urgency and t.key = ''
left join lateral (
    select r.run_at
    from ready r
    where r.job_type = q.job_type and r.urgency = q.urgency and r.run_at >= coalesce(t.start, '-infinity')
    order by r.run_at, r.job_id
    limit 1
) first on true
order by q.nth;

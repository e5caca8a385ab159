-- Find how many jobs of each range of the queue are among the $6 most urgent of all.
-- $1..$5 are the ranges: see claim.sql. There is a row for each that has any of them, in
-- order, with its place in $1..$5 from 1 on.
-- Clock: none. Fence: none, it only reads.
-- Locks: none. A job that a claimer has locked counts: the claim may roll back.
-- Index: ready_pkey for each range.
select first.nth, count(*)::integer as jobs
from (
    select s.nth::integer as nth
    from unnest($1::text[], $2::smallint[], $3::timestamptz[], $4::uuid[], $5::integer[])
        with ordinality as s (job_type, urgency, run_at, job_id, until, nth)
    cross join lateral (
        select r.urgency, r.run_at, r.job_id
        from ready r
        where r.job_type = s.job_type and r.urgency < s.until
            and (r.urgency, r.run_at, r.job_id) >= (s.urgency, s.run_at, s.job_id)
        order by r.urgency, r.run_at, r.job_id
        limit $6
    ) waiting
    order by waiting.urgency, waiting.run_at, waiting.job_id
    limit $6
) first
group by first.nth
order by first.nth;

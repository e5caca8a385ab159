-- Find the first job that waits below each low-water mark: its commit came late, or it
-- was given back to its old position.
-- $1..$4 are the marks: type, urgency, due time, id. There is a row for each, in order,
-- with the position of that job or nulls, and the time that the search took so far:
-- while an old snapshot keeps dead entries, it passes all of them.
-- Clock: the server's, only to measure the search. Fence: none, it only reads.
-- Locks: none. A job that a claimer has locked counts: the claim may roll back.
-- Index: ready_pkey, from the beginning of each urgency up to the mark.
select first.run_at, first.job_id, clock_timestamp() - statement_timestamp() as took
from unnest($1::text[], $2::smallint[], $3::timestamptz[], $4::uuid[])
    with ordinality as m (job_type, urgency, run_at, job_id, nth)
left join lateral (
    select r.run_at, r.job_id
    from ready r
    where r.job_type = m.job_type and r.urgency = m.urgency and (r.run_at, r.job_id) < (m.run_at, m.job_id)
    order by r.run_at, r.job_id
    limit 1
) first on true
order by m.nth;

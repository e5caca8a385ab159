-- Look for the first job that waits before each mark: one whose commit came late,
-- or that was given back to its old place.
-- $1..$4 are the marks: type, urgency, due time, id. Each is answered, in turn, with
-- the place of that job or with nothing, and with how long it took until then:
-- where an old snapshot keeps dead entries, all of them are walked over.
-- Clock: the server's, for how long it took only. Fence: none, it is only read.
-- Locks: none. A job under a claimer's lock counts: its claim may come to nothing.
-- Index: ready_pkey, from the beginning of each urgency up to the mark.
select first.run_at, first.job_id, clock_timestamp() - statement_timestamp() as took
from unnest($1::text[], $2::smallint[], $3::timestamptz[], $4::uuid[])
    with ordinality as m (job_type, urgency, run_at, job_id, place)
left join lateral (
    select r.run_at, r.job_id
    from ready r
    where r.job_type = m.job_type and r.urgency = m.urgency and (r.run_at, r.job_id) < (m.run_at, m.job_id)
    order by r.run_at, r.job_id
    limit 1
) first on true
order by m.place;

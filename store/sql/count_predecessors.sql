-- Count the jobs $1, which have ended, as missing no more in the jobs after them.
-- Clock: none.
-- Locks: rows of workflow_jobs; the caller is the one who follows.
-- Index: workflow_edges_pkey, workflow_jobs_pkey.
update workflow_jobs s
set missing = s.missing - c.ended
from (
    select e.job_id, count(*) as ended
    from unnest($1::uuid[]) as i (job_id)
    cross join lateral (select w.job_id from workflow_edges w where w.after_id = i.job_id offset 0) e
    group by e.job_id
) c
where s.job_id between c.job_id and c.job_id;

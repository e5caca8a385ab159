-- Note when those of the jobs $1 that are scheduled are due, before they are held.
-- Clock: none.
-- Locks: rows of workflow_jobs.
-- Index: workflow_jobs_pkey, jobs_pkey.
update workflow_jobs wj
set run_at = j.run_at
from jobs j
where wj.job_id = any ($1::uuid[]) and j.job_id = wj.job_id and j.state in ('created', 'queued') and j.run_at < 'infinity'
returning wj.job_id;

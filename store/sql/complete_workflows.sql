-- Let nothing be missing any more for the last jobs of those of the workflows $1 whose other
-- jobs have all ended.
-- Clock: none.
-- Locks: rows of workflow_jobs; the caller is the one who follows.
-- Index: workflows_pkey, workflow_jobs_pkey.
update workflow_jobs c
set missing = 0
from workflows w
where w.workflow_id = any ($1::uuid[]) and w.remaining = 0 and c.job_id = w.on_complete and c.missing > 0;

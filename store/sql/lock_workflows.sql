-- Lock the workflows of those of the jobs $1 that have not ended for their workflow, so that
-- nobody holds, releases or cancels them before the caller has counted.
-- Locks: workflows, in the order of their ids.
-- Index: workflow_jobs_pkey, workflows_pkey.
select w.workflow_id
from workflows w
where w.workflow_id = any (array(
    select wj.workflow_id from workflow_jobs wj where wj.job_id = any ($1::uuid[]) and wj.ended is null
))
order by w.workflow_id for update;

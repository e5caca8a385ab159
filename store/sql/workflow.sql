-- One workflow.
-- Index: workflows_pkey; workflow_jobs_position, dead_letters_pkey if a job has died.
select w.workflow_id as id, w.tenant, coalesce(w.name, '') as name, w.jobs, w.remaining, w.unsuccessful, w.held,
    w.created_at, w.canceled_at, w.finished_at,
    w.deaths > 0 and w.finished_at is null and exists (
        select from workflow_jobs wj
        join dead_letters d on d.job_id = wj.job_id
        where wj.workflow_id = w.workflow_id and wj.ended is null
    ) as dead
from workflows w
where w.workflow_id = $1;

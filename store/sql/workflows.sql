-- Workflows, newest first: up to $4, only of tenant $1 unless it is empty, only unfinished ones
-- if $2, older than $3 if that is set.
-- Index: workflows_tenant for one tenant, workflows_unfinished or workflows_pkey for all;
-- workflow_jobs_position, dead_letters_pkey for unfinished ones in which a job has died.
select w.workflow_id as id, w.tenant, coalesce(w.name, '') as name, w.jobs, w.remaining, w.unsuccessful, w.held,
    w.created_at, w.canceled_at, w.finished_at,
    w.deaths > 0 and w.finished_at is null and exists (
        select from workflow_jobs wj
        join dead_letters d on d.job_id = wj.job_id
        where wj.workflow_id = w.workflow_id and wj.ended is null
    ) as dead
from workflows w
where ($1::text = '' or w.tenant = $1) and (not $2 or w.finished_at is null) and ($3::uuid is null or w.workflow_id < $3)
order by w.workflow_id desc
limit $4;

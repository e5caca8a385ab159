-- What a job of a workflow waits for: how many jobs before it have not ended, the names
-- of up to $2 of them, and whether its workflow is held or
-- canceled. No row for a job of no workflow.
-- Index: workflow_jobs_pkey, workflows_pkey, workflow_edges_job, workflow_jobs_position.
select wj.missing, w.held, w.canceled_at is not null as canceled, wj.position = w.jobs as last, w.remaining,
    array(
        select coalesce(nullif(p.name, ''), p.job_id::text)
        from workflow_edges e
        join workflow_jobs p on p.job_id = e.after_id
        where e.job_id = wj.job_id and p.ended is null
        order by e.position
        limit $2
    ) as names
from workflow_jobs wj
join workflows w on w.workflow_id = wj.workflow_id
where wj.job_id = $1;

-- The jobs of a workflow, in their order. What is not in the ledger any more is shown as it
-- ended.
-- Index: workflow_jobs_position, workflow_edges_job, jobs_pkey, leases_pkey.
select wj.job_id, coalesce(j.job_type, '') as type, coalesce(wj.name, '') as name,
    coalesce(j.state::text, wj.ended::text, 'canceled') as state, wj.on_death,
    wj.position = w.jobs as on_complete, wj.skipped, wj.missing, case when j.state = 'canceled' and j.started_at is null then coalesce(j.last_error, '') else '' end as reason,
    array(select e.after_id from workflow_edges e where e.job_id = wj.job_id order by e.position) as after
from workflows w
join workflow_jobs wj on wj.workflow_id = w.workflow_id
left join current_jobs j on j.job_id = wj.job_id
where w.workflow_id = $1
order by wj.position;

-- Jobs of the workflows $1 that have ended, but not for their workflow: an orchestrator that is
-- too old to say so has ended them, or they were dead when their workflow was canceled.
-- Index: workflow_jobs_position, jobs_pkey.
select wj.job_id, j.state::text as state
from workflow_jobs wj
join jobs j on j.job_id = wj.job_id
where wj.workflow_id = any ($1::uuid[]) and wj.ended is null and j.state in ('succeeded', 'dead', 'canceled')
order by wj.workflow_id, wj.position;

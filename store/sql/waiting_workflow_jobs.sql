-- Up to $2 jobs of the workflow $1 that wait for others or for their time.
-- Index: workflow_jobs_position, timers_pkey.
select t.job_id
from workflow_jobs wj
join timers t on t.job_id = wj.job_id
where wj.workflow_id = $1 and wj.ended is null
order by wj.position
limit $2;

-- Up to $2 jobs of the workflow $1 that wait for their time or in a queue and have used no
-- attempt, without those that are held.
-- Index: workflow_jobs_position, jobs_pkey, leases_pkey.
select wj.job_id
from workflow_jobs wj
cross join lateral (
    select from jobs j
    where j.job_id = wj.job_id and j.state in ('created', 'queued') and j.attempt = 0 and j.run_at < 'infinity'
    offset 0
) j
where wj.workflow_id = $1 and wj.ended is null
    and not exists (select from leases l where l.job_id = wj.job_id)
order by wj.position
limit $2;

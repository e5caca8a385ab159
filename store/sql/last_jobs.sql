-- The states of the jobs $1, those that schedules have made last, without those that are
-- deleted.
-- Index: jobs_pkey, leases_pkey.
select j.job_id, case when l.job_id is null then j.state::text else 'running' end as state
from jobs j
left join leases l on l.job_id = j.job_id
where j.job_id = any ($1::uuid[]);

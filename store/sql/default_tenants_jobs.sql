-- Like tenants_jobs.sql for the tenant `default`, which has no index of its own because most
-- jobs are its: it returns jobs of other tenants too, for which asked is false.
-- Index: jobs_pkey.
select job_id, state in ('succeeded', 'dead', 'canceled') as ended, created_at <= $5::timestamptz and tenant = $1::text as asked
from jobs
where job_id > $2::uuid and job_id < $3::uuid
order by job_id
limit $4;

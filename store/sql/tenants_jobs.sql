-- The next $4 jobs of tenant $1 in the order of creation: after $2, and before $3. Of those
-- that were created by $5, asked is true.
-- Index: jobs_tenant.
select job_id, state in ('succeeded', 'dead', 'canceled') as ended, created_at <= $5::timestamptz as asked
from jobs
where tenant <> 'default' and (tenant, job_id) > ($1::text, $2::uuid) and (tenant, job_id) < ($1::text, $3::uuid)
order by tenant, job_id
limit $4;

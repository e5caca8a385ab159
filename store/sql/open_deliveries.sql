-- How many deliveries of the ends of jobs $1 have not ended, of those that were made after $2.
-- Index: jobs_parent.
select count(*)
from unnest($1::uuid[]) i (job_id)
cross join lateral (
    select c.job_type, c.state, c.created_at from jobs c where c.parent_id = i.job_id order by c.parent_id, c.job_id offset 0
) c
where c.job_type = 'WEBHOOK' and c.state not in ('succeeded', 'dead', 'canceled') and c.created_at > $2::timestamptz;

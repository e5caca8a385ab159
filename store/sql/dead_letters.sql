-- Up to $1 dead letters, the newest first.
-- Index: dead_letters_dead_at, jobs_pkey.
select d.job_id, j.job_type, j.tenant, d.dead_at, j.attempt, coalesce(j.last_error, '') as last_error
from dead_letters d
join jobs j on j.job_id = d.job_id
order by d.dead_at desc, d.job_id desc
limit $1;

-- Up to $1 dead letters, newest first: of type $2 and tenant $3 unless these are
-- empty, and after the position $4, $5 unless it is null.
-- Index: dead_letters_dead_at, jobs_pkey.
select d.job_id as id, j.job_type as type, j.tenant, d.dead_at, j.attempt as attempts, coalesce(j.last_error, '') as last_error
from (
    select job_id, dead_at
    from dead_letters
    where (dead_at, job_id) < (coalesce($4::timestamptz, 'infinity'), coalesce($5::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
        and ($2::text = '' or job_type = $2) and ($3::text = '' or tenant = $3)
    order by dead_at desc, job_id desc
    limit $1
) d
join jobs j on j.job_id = d.job_id
order by d.dead_at desc, d.job_id desc;

-- Up to $1 dead letters, newest first: of type $2, tenant $3, error code $6 and fingerprint
-- $7 unless these are empty, and after the position $4, $5 unless it is null. Those of a
-- type and a fingerprint are found by these; of the two scans, only one is done.
-- Index: dead_letters_dead_at or dead_letters_group; jobs_pkey.
with newest as materialized (
    select job_id, dead_at, error_code, fingerprint
    from dead_letters
    where ($2::text = '' or $7::text = '')
        and (dead_at, job_id) < (coalesce($4::timestamptz, 'infinity'), coalesce($5::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
        and ($2 = '' or job_type = $2) and ($3::text = '' or tenant = $3)
        and ($6::text = '' or error_code = $6) and ($7 = '' or fingerprint = $7)
    order by dead_at desc, job_id desc
    limit $1
), newest_of_group as materialized (
    select job_id, dead_at, error_code, fingerprint
    from dead_letters
    where $2 <> '' and $7 <> '' and fingerprint >= ''
        and (job_type, fingerprint, dead_at, job_id) >= ($2, $7, '-infinity', '00000000-0000-0000-0000-000000000000')
        and (job_type, fingerprint, dead_at, job_id)
            < ($2, $7, coalesce($4, 'infinity'), coalesce($5, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
        and ($3 = '' or tenant = $3) and ($6 = '' or error_code = $6)
    order by job_type desc, fingerprint desc, dead_at desc, job_id desc
    limit $1
)
select d.job_id as id, j.job_type as type, j.tenant, d.dead_at, j.attempt as attempts, coalesce(j.last_error, '') as last_error,
    d.error_code as code, d.fingerprint, j.erased_at is not null as erased
from (select * from newest union all select * from newest_of_group) d
join jobs j on j.job_id = d.job_id
order by d.dead_at desc, d.job_id desc;

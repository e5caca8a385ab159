-- Up to $1 dead letters without a fingerprint, and the errors of the attempts that the jobs
-- died of.
-- Index: dead_letters_unprinted, jobs_pkey, unsuccessful_attempts_pkey.
select d.job_id as id, coalesce(last.error_code, '') as code, coalesce(last.error, '') as error,
    coalesce(last.plugin_version, '') as version
from (
    select job_id
    from dead_letters
    where fingerprint = ''
    order by job_id
    limit $1
) d
left join lateral (
    select a.error_code, a.error, a.plugin_version
    from jobs j
    join unsuccessful_attempts a on a.job_id = j.job_id and a.fence = j.fence
    where j.job_id = d.job_id
    limit 1
) last on true
order by d.job_id;

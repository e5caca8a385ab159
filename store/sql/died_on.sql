-- Under which versions of plugins the dead jobs $1 died, by job type.
-- Index: dead_letters_pkey.
select job_type as type, plugin_version as version, count(*)::integer as jobs
from dead_letters
where job_id = any ($1::uuid[]) and plugin_version <> ''
group by job_type, plugin_version
order by count(*) desc, job_type, plugin_version
limit 20;

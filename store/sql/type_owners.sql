-- The job types of $1 that a plugin other than $2 owns.
-- Index: type_owners_pkey.
select job_type as type, plugin
from type_owners
where job_type = any($1::text[]) and plugin <> $2
order by job_type;

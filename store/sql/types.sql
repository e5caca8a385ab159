-- Every job type that a plugin has ever declared.
-- Index: none needed; a handful of rows.
select job_type as type, plugin, version, schema::text as schema, max_attempts, timeout, retry,
    description, concurrency, terms
from job_types
order by job_type;

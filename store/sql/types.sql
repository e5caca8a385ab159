-- Every job type that a handler has ever declared.
-- Index: none needed; a handful of rows.
select job_type, plugin, version, schema::text as schema, max_attempts, timeout, retry::text as retry,
    description, concurrency
from job_types
order by job_type;

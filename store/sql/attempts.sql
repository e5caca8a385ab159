-- The ended attempts of a job, oldest first.
-- Index: unsuccessful_attempts_pkey, jobs_pkey.
select fence, attempt as number, worker_id, coalesce(plugin, '') as plugin,
    coalesce(plugin_version, '') as plugin_version, due_at, claimed_at, began_at, done_at, ended_at,
    outcome::text as outcome, coalesce(error_code, '') as code,
    coalesce(error, '') as error, coalesce(stack, '') as stack, coalesce(span_id, '') as span_id
from job_attempts
where job_id = $1
order by fence;

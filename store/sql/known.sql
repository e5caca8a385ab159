-- The hash of the request that created the job with key $2 of tenant $1.
-- Index: jobs_idempotency_key.
select request_hash
from jobs
where tenant = $1 and idempotency_key = $2;

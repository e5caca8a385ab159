-- Operations, the newest first, up to $3 of them: of tenant $2 unless it is empty, and only $1
-- unless it is null. If $4 is given, only the one that the caller $5 has started with this key.
-- Index: none; a handful of rows.
select operation_id as id, action, filter::text as filter, frozen_at, tenant, priority, rate, reason, started_by as by, stopped_by, state,
    expected, expected_more, job_id as position, found, done, skipped::text as skipped, failures, last_error, request_hash as hash,
    started_at, updated_at, finished_at
from operations
where ($1::uuid is null or operation_id = $1) and ($2::text = '' or tenant = $2)
    and ($4::text is null or idempotency_key = $4 and started_by = $5)
order by started_at desc, operation_id desc
limit $3;

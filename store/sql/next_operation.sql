-- The operation that is due first and that nobody works on.
-- Clock: now().
-- Locks: its row, skipping those that others work on.
-- Index: operations_unfinished.
select operation_id as id, action, filter::text as filter, frozen_at, tenant, priority, rate, reason, started_by as by, stopped_by, state,
    expected, expected_more, job_id as position, found, done, skipped::text as skipped, failures, last_error, request_hash as hash,
    started_at, updated_at, finished_at
from operations
where finished_at is null and due_at <= now()
order by due_at, operation_id
limit 1 for update skip locked;

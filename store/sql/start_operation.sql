-- Start an operation $1, and write down who started it and why. A request with a key that its
-- caller has used before changes nothing, nor does the same id sent again. $13 is the filter as
-- the audit log may show it.
-- Clock: now().
-- Locks: its own row.
-- Index: operations_pkey, operations_key.
with started as (
    insert into operations (
        operation_id, action, filter, frozen_at, tenant, priority, rate, reason, started_by, idempotency_key, request_hash,
        expected, expected_more
    )
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $14)
    on conflict do nothing
    returning *
)
insert into audit_log (actor, action, tenant, filter, count, reason, result)
select started_by, 'operation.' || action, nullif(tenant, ''), jsonb_build_object('operationId', operation_id) || $13::jsonb,
    expected, reason, 'started'
from started;

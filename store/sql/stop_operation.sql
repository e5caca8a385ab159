-- Stop operation $1 on behalf of $2, if it is of tenant $3 or that is empty, and write it into
-- the audit log. Whoever works on a portion finishes it first. One that has ended stays as it is.
-- Clock: now().
-- Locks: its row, which waits for the portion.
-- Index: operations_pkey.
with stopped as (
    update operations
    set state = 'stopped', stopped_by = $2, updated_at = now(), finished_at = now()
    where operation_id = $1 and finished_at is null and ($3::text = '' or tenant = $3)
    returning *
)
insert into audit_log (actor, action, tenant, filter, count, result)
select stopped_by, 'operation.stop', nullif(tenant, ''),
    jsonb_build_object('operationId', operation_id, 'action', action, 'skipped', skipped), done, 'stopped'
from stopped;

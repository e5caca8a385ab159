-- Try operation $1 again later, because a portion has failed with the error $2; the longer, the
-- more have failed. After $3 of them it has failed, which is written into the audit log.
-- Clock: now().
-- Locks: its row.
-- Index: operations_pkey.
with postponed as (
    update operations
    set failures = failures + 1, last_error = $2, updated_at = now(),
        due_at = now() + least(failures + 1, 30) * interval '1 second',
        state = case when failures + 1 >= $3::integer then 'failed' else state end,
        finished_at = case when failures + 1 >= $3 then now() end
    where operation_id = $1 and finished_at is null
    returning *
), audited as (
    insert into audit_log (actor, action, tenant, filter, count, reason, result)
    select started_by, 'operation.' || action, nullif(tenant, ''),
        jsonb_build_object('operationId', operation_id, 'skipped', skipped), done, reason, 'failed: ' || last_error
    from postponed
    where finished_at is not null
)
select finished_at is not null as failed from postponed;

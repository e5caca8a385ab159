-- Write down what a portion of operation $1 has done: where it goes on ($2), and what it has
-- found, done and skipped so far. $6 is how long the portion takes at the operation's rate; up
-- to half a second that went by unused is made up for. With $7 it is finished, which is
-- written into the audit log.
-- Clock: now().
-- Locks: its row, which is locked by next_operation.sql.
-- Index: operations_pkey.
with saved as (
    update operations
    set job_id = $2, found = $3, done = $4, skipped = $5, failures = 0, last_error = '', updated_at = now(),
        due_at = greatest(due_at, now() - interval '0.5 seconds') + $6::interval,
        state = case when $7::boolean then 'finished' else state end, finished_at = case when $7 then now() end
    where operation_id = $1
    returning *
), audited as (
    insert into audit_log (actor, action, tenant, filter, count, reason, result)
    select started_by, 'operation.' || action, nullif(tenant, ''),
        jsonb_build_object('operationId', operation_id, 'skipped', skipped), done, reason, 'finished'
    from saved
    where finished_at is not null
)
select updated_at from saved;

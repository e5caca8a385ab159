-- Delete acts of the audit log that are older than $1, up to $2 of them, the oldest first.
-- Returns how many. Any number of processes may do so at once.
-- Clock: now().
-- Locks: the rows deleted. Those that another process deletes are left out.
-- Index: audit_log_at, audit_log_pkey.
with old as materialized (
    select audit_id from audit_log where at < now() - $1::interval order by at, audit_id limit $2 for update skip locked
), deleted as (
    delete from audit_log a using old where a.audit_id = old.audit_id returning a.audit_id
)
select count(*)::integer as acts from deleted;

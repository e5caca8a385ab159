-- Write down what actor $1 did: action $2, on tenant $3 unless it is empty, job $4 and filter
-- $5, with count $6, reason $7 and result $8.
-- Clock: now().
-- Locks: its own row.
-- Index: audit_log_pkey.
insert into audit_log (actor, action, tenant, job_id, filter, count, reason, result)
values ($1, $2, nullif($3::text, ''), $4::uuid, $5::jsonb, $6::bigint, $7, $8);

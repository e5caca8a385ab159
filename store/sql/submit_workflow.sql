-- Store a workflow without its jobs, or find the one that was stored with the same key, or
-- else the same id. A replay writes the row, so that its answer waits for the standby.
-- Clock: now(), by default.
-- Locks: the row of the workflow that has the key.
-- Index: workflows_key.
insert into workflows as w (
    workflow_id, tenant, name, idempotency_key, request_hash, jobs, remaining, on_complete, completed
)
values ($1, $2, $3, $4, $5, $6, $6, $7, $7::uuid is null)
on conflict (tenant, (coalesce('key:' || idempotency_key, workflow_id::text)))
do update set tenant = excluded.tenant
returning w.workflow_id as id, w.request_hash, w.created_at, xmax = 0 as fresh;

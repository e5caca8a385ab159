-- Hold a workflow, or release it if not $2. Returns nothing if it has finished or is canceled.
-- Clock: none.
-- Locks: the row.
-- Index: workflows_pkey.
update workflows
set held = $2
where workflow_id = $1 and finished_at is null and canceled_at is null
returning workflow_id;

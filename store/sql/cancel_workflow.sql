-- Cancel a workflow: from now on no job of it becomes due. Returns nothing if it has finished.
-- Clock: now().
-- Locks: the row.
-- Index: workflows_pkey.
update workflows
set canceled_at = coalesce(canceled_at, now()), held = false
where workflow_id = $1 and finished_at is null
returning workflow_id;

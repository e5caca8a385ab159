-- Store which job of a new workflow comes after which.
-- Locks: none but the new rows.
-- Index: none.
insert into workflow_edges (after_id, job_id, position)
select after_id, job_id, position
from unnest($1::uuid[], $2::uuid[], $3::integer[]) as i (after_id, job_id, position);

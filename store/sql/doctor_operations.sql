-- Operations that do not get on: portions fail, or nobody has gone on with one for $1.
-- Clock: now().
-- Index: operations_unfinished.
select case when failures > 0 then 'failing' else 'silent' end as finding, operation_id::text as id, action, last_error,
    now() - case when failures > 0 then updated_at else due_at end as lasted
from operations
where finished_at is null and (failures > 2 or due_at < now() - $1::interval)
order by started_at
limit $2;

-- Save how far erasure $1 is: at job $2, with $3 more jobs blanked and $4 more left because
-- they have not ended. With $5 it is finished, which is written down.
-- Clock: now().
-- Locks: its row, which is locked by next_erasure.sql.
-- Index: erasures_pkey.
with saved as (
    update erasures
    set job_id = $2, erased = erased + $3, left_open = left_open + $4, updated_at = now(),
        finished_at = case when $5::boolean then now() end
    where erasure_id = $1
    returning erasure_id, tenant, reason, asked_by, erased, left_open, finished_at
)
insert into audit_log (actor, action, tenant, filter, count, reason, result)
select asked_by, 'tenant.erase', tenant, jsonb_build_object('erasureId', erasure_id), erased, reason,
    case when left_open = 0 then 'finished' else 'finished, except for ' || left_open || ' open jobs' end
from saved
where finished_at is not null;

-- Ask for the erasure of all ended jobs of tenant $2, and write down who asked and why. The
-- same id sent again changes nothing.
-- Clock: now().
-- Locks: its own row.
-- Index: erasures_pkey.
with asked as (
    insert into erasures (erasure_id, tenant, asked_by, reason)
    values ($1, $2, $3, $4)
    on conflict (erasure_id) do nothing
    returning tenant, asked_by, reason
)
insert into audit_log (actor, action, tenant, filter, reason, result)
select asked_by, 'tenant.erase', tenant, jsonb_build_object('erasureId', $1::uuid), reason, 'asked'
from asked;

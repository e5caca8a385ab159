-- The kept leases of worker $1, and those of them whose jobs are to be canceled. Run it after renew.sql in the
-- same transaction: those that had expired are not kept any more by then. A worker that is not known has none.
-- Index: workers_pkey, leases_kept.
select coalesce(array_agg(lease_id), '{}') as kept,
    coalesce(array_agg(lease_id) filter (where cancel_requested), '{}') as canceling
from leases
where kept and worker_id = (select worker_id from workers where worker_id = $1);

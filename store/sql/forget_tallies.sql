-- Forget slots that no window reaches any more, and workers that are forgotten.
-- Clock: now().
-- Locks: an advisory lock of the transaction, as when folding.
-- Index: tally_slots_pkey, workers_pkey.
with old as (
    delete from tally_slots where slot < now() - interval '25 hours' and (select pg_try_advisory_xact_lock(4653010))
)
delete from tally_workers t
where (select pg_try_advisory_xact_lock(4653010)) and not exists (select from workers w where w.worker_id = t.worker_id);

-- Delete slots that are too old for any window, and the tallies of deleted workers.
-- Clock: now().
-- Locks: an advisory lock of the transaction, the same as roll_up_tallies.
-- Index: tally_slots_pkey, workers_pkey.
with old as (
    delete from tally_slots where slot < now() - interval '25 hours' and (select pg_try_advisory_xact_lock(4653010))
)
delete from tally_workers t
where (select pg_try_advisory_xact_lock(4653010)) and not exists (select from workers w where w.worker_id = t.worker_id);

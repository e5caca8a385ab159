-- Lock the row of worker $1, so that what follows in the transaction sees what whoever held it before
-- has done: another heartbeat of the worker, or a reaper.
-- Locks: its own row.
-- Index: workers_pkey.
select from workers where worker_id = $1 for update;

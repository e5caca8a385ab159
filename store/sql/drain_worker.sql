-- Ask worker $1 to take no more jobs, unless it has been asked before.
-- Clock: now().
-- Locks: its own row.
-- Index: workers_pkey.
update workers set drain_asked_at = coalesce(drain_asked_at, now())
where worker_id = $1 and stopped_at is null
returning worker_id;

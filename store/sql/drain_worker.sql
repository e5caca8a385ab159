-- Ask worker $1 to take no more jobs, unless it has been asked before. A process without the
-- role of a worker takes none.
-- Clock: now().
-- Locks: its own row.
-- Index: workers_pkey.
update workers set drain_asked_at = coalesce(drain_asked_at, now())
where worker_id = $1 and stopped_at is null and 'worker' = any(roles)
returning worker_id;

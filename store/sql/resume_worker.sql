-- Let worker $1 take jobs again. A process without the role of a worker takes none.
-- Locks: its own row.
-- Index: workers_pkey.
update workers set drain_asked_at = null, drained_at = null
where worker_id = $1 and stopped_at is null and 'worker' = any(roles)
returning worker_id;

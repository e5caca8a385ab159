-- Let worker $1 take jobs again.
-- Locks: its own row.
-- Index: workers_pkey.
update workers set drain_asked_at = null, drained_at = null
where worker_id = $1 and stopped_at is null
returning worker_id;

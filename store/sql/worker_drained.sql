-- Record that worker $1, which was asked to take no more jobs, has none any more.
-- Clock: now().
-- Locks: its own row.
-- Index: workers_pkey.
update workers set drained_at = now()
where worker_id = $1 and drain_asked_at is not null and drained_at is null;

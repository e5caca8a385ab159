-- Store what worker $1 serves, for operators.
-- Locks: its own row.
-- Index: workers_pkey.
update workers set plugins = $2::text::json where worker_id = $1;

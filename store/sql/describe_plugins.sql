-- Store the plugins of worker $1, for all orchestrators, unless the worker is not known any
-- more.
-- Clock: now().
-- Locks: its own row, and that of the worker for key share.
-- Index: plugin_status_pkey, workers_pkey.
insert into plugin_status as s (worker_id, plugins)
select w.worker_id, $2::text::json from workers w where w.worker_id = $1 for key share
on conflict (worker_id) do update
set plugins = excluded.plugins, described_at = now();

-- Record that command $1 has ended at worker $2 with result $3 because of $4, and its swap.
-- Clock: now().
-- Locks: its own outcome.
-- Index: plugin_outcomes_pkey.
update plugin_outcomes set ended_at = now(), result = $3, reason = $4, swap = $5::text::json
where command_id = $1 and worker_id = $2 and ended_at is null;

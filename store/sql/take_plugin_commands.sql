-- Take on the commands for worker $1 that it has not taken on before, and whose deadline has
-- not passed. If the answer is lost, nobody carries them out.
-- Clock: now().
-- Locks: its own outcomes.
-- Index: plugin_outcomes_open, plugin_commands_pkey.
update plugin_outcomes o set taken_at = now()
from plugin_commands c
where o.worker_id = $1 and o.ended_at is null and o.taken_at is null and c.command_id = o.command_id and c.deadline > now()
returning c.command_id as id, c.plugin, c.verb, c.force, c.actor, c.deadline - now() as within;

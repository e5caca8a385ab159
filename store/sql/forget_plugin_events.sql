-- Delete up to $2 events of plugins that are older than $1, and as many commands. A row that
-- another orchestrator is deleting is left to it.
-- Clock: now().
-- Locks: the rows, skipping locked ones.
-- Index: plugin_events_at, plugin_commands_asked_at, plugin_events_pkey, plugin_commands_pkey.
with old_events as materialized (
    select event_id from plugin_events where at < now() - $1::interval order by at limit $2 for update skip locked
), old_commands as materialized (
    select command_id from plugin_commands where asked_at < now() - $1::interval order by asked_at limit $2
    for update skip locked
), commands as (
    delete from plugin_commands where command_id in (select command_id from old_commands)
    returning 1
), events as (
    delete from plugin_events where event_id in (select event_id from old_events)
    returning 1
)
select greatest((select count(*) from events), (select count(*) from commands));

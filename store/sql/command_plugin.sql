-- Ask $3 of plugin $2 as command $1, by $5 because of $6, to be done within $7: of every
-- worker that is alive and has the plugin, or of worker $8 or those on host $9 unless these
-- are empty. $4 is force. Without such a worker there is no command. The same id sent again
-- makes one command. Returns how many workers it is for.
-- Clock: now().
-- Locks: the rows that it writes.
-- Index: plugin_commands_pkey, plugin_outcomes_pkey; a handful of workers.
with targets as materialized (
    select w.worker_id, w.host
    from workers w
    left join plugin_status s on s.worker_id = w.worker_id
    where w.stopped_at is null and w.alive_until > now()
        and ($8::text = '' or w.worker_id = $8) and ($9::text = '' or w.host = $9)
        and (exists (select from json_array_elements(s.plugins) p where p ->> 'name' = $2)
            or s.plugins is null and exists (
                select from json_array_elements(case json_typeof(w.plugins) when 'array' then w.plugins else '[]' end) p
                where p ->> 'Plugin' = $2))
), command as (
    insert into plugin_commands (command_id, plugin, verb, force, actor, reason, deadline)
    select $1, $2, $3, $4, $5, $6, now() + $7::interval
    where exists (select from targets)
    on conflict (command_id) do nothing
    returning command_id
), outcomes as (
    insert into plugin_outcomes (command_id, worker_id, host)
    select c.command_id, t.worker_id, t.host from command c cross join targets t
)
select count(*) from targets;

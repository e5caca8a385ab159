-- The command $1 with what has become of it, one row for each worker that it is for.
-- Clock: now().
-- Index: plugin_commands_pkey, plugin_outcomes_pkey.
select c.plugin, c.verb, c.force, c.actor, c.reason, c.asked_at, c.deadline, o.worker_id as worker, o.host,
    case
        when o.result is not null then o.result
        when c.deadline <= now() then 'unanswered'
        when o.taken_at is not null then 'running'
        else 'waiting'
    end as result,
    o.reason as outcome_reason, o.taken_at, o.ended_at, o.swap::text as swap
from plugin_commands c
join plugin_outcomes o on o.command_id = c.command_id
where c.command_id = $1
order by o.host, o.worker_id;

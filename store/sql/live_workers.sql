-- Live processes, counted by their roles and by what they serve. Those that are asked to take
-- no more jobs are left out.
-- Clock: now().
-- Index: none; a handful of workers.
select roles, plugins::text as plugins, count(*)::integer as processes
from workers
where stopped_at is null and alive_until > now() and drain_asked_at is null
group by roles, plugins::text;

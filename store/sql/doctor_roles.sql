-- Roles that no live process has, with how long ago the last one was alive that had it; null
-- if none is known.
-- Clock: now().
-- Index: none; a handful of workers.
select r.role, now() - max(least(coalesce(w.stopped_at, w.alive_until), now())) filter (where w.worker_id is not null) as since
from unnest($1::text[]) as r (role)
left join workers w on r.role = any(w.roles)
group by r.role
having count(*) filter (where w.stopped_at is null and w.alive_until > now()) = 0
order by r.role;

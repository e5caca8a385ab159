-- The jobs that cannot go on because the jobs $1 were canceled or the jobs $2 are dead, with
-- the reason, and whether those after them go on. Those that wait for a requeue are not among
-- them, nor those after a job that has ended since it died: its death was told late.
-- Index: workflow_edges_pkey, workflow_jobs_pkey.
select distinct on (s.job_id) s.job_id, s.on_death = 'skip' as skipped,
    case when s.on_death = 'skip' then 'skipped: ' else 'canceled: ' end
        || case when p.name is null then 'the job before it' else p.name end
        || case when before.dead then ' died' else ' was canceled' end as reason
from (
    select job_id, false as dead from unnest($1::uuid[]) as c (job_id)
    union all
    select job_id, true from unnest($2::uuid[]) as d (job_id)
) before
cross join lateral (
    select m.name, m.ended, m.skipped from workflow_jobs m where m.job_id = before.job_id offset 0
) p
cross join lateral (select w.job_id from workflow_edges w where w.after_id = before.job_id offset 0) e
cross join lateral (
    select m.job_id, m.ended, m.on_death from workflow_jobs m where m.job_id = e.job_id offset 0
) s
where s.ended is null and not (before.dead and p.ended is not null)
    and (s.on_death <> 'wait' or not before.dead) and not (not before.dead and p.skipped)
order by s.job_id;

-- Workflows that do not go on, up to $2, the longest first: jobs for which nothing is missing and
-- that nobody holds, but that have no due time although the last one before them ended more than
-- $1 ago; and workflows that are not finished, with no job, although all have ended that long ago.
-- A dead job has ended only in a workflow that is canceled.
-- Clock: now().
-- Index: workflows_unfinished; workflow_jobs_position, jobs_pkey, timers_pkey,
-- workflow_edges_job. Every job of an unfinished workflow is read.
with members as materialized (
    select w.workflow_id, wj.job_id, wj.run_at as noted,
        wj.ended is not null or j.job_id is null or j.state in ('succeeded', 'canceled')
            or j.state = 'dead' and w.canceled_at is not null as over,
        not w.held and w.canceled_at is null
            and (wj.missing = 0 or wj.job_id = w.on_complete and w.remaining = 0) as free,
        w.on_complete, j.state, greatest(j.updated_at, w.canceled_at) as changed_at
    from workflows w
    join workflow_jobs wj on wj.workflow_id = w.workflow_id
    left join jobs j on j.job_id = wj.job_id
    where w.finished_at is null
), waiting as (
    select m.workflow_id, m.job_id, greatest(m.changed_at, before.ended_at) as since
    from members m
    join timers t on t.job_id = m.job_id
    cross join lateral (
        select max(coalesce(j.finished_at, j.updated_at)) as ended_at
        from workflow_edges e
        join jobs j on j.job_id = e.after_id
        where e.job_id = m.job_id
    ) before
    where m.free and m.state = 'created' and t.run_at = 'infinity' and m.noted is distinct from 'infinity'
), unfinished as (
    select workflow_id, null::uuid, max(changed_at)
    from members
    group by workflow_id
    having bool_and(over)
)
select workflow_id, job_id, now() - since as waited
from (select * from waiting union all select * from unfinished) as found (workflow_id, job_id, since)
where since < now() - $1::interval
order by since, workflow_id, job_id
limit $2;

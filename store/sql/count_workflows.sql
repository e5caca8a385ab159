-- Count in the workflows $1 that $2 jobs have ended, that $3 have done so without success, and
-- ($4) that the last job has ended. One whose last job has ended is finished. Mark the
-- workflows of the jobs $5, which have died. Returns those that are finished now.
-- Clock: now().
-- Locks: workflows, which the caller has locked.
-- Index: workflows_pkey, workflow_jobs_pkey.
with died as (
    select wj.workflow_id, count(*) as deaths
    from workflow_jobs wj
    where wj.job_id = any ($5::uuid[])
    group by wj.workflow_id
), change as (
    select workflow_id, coalesce(i.ended, 0) as ended, coalesce(i.unsuccessful, 0) as unsuccessful,
        coalesce(i.completed, false) as completed, coalesce(d.deaths, 0) as deaths
    from unnest($1::uuid[], $2::integer[], $3::integer[], $4::boolean[]) as i (workflow_id, ended, unsuccessful, completed)
    full join died d using (workflow_id)
), counted as (
    update workflows w
    set remaining = w.remaining - c.ended, unsuccessful = w.unsuccessful + c.unsuccessful, deaths = w.deaths + c.deaths,
        completed = w.completed or c.completed,
        finished_at = case
            when w.finished_at is not null then w.finished_at
            when w.remaining = c.ended and (w.completed or c.completed) then now()
        end
    from change c
    where w.workflow_id = c.workflow_id
    returning w.workflow_id, w.unsuccessful, w.finished_at
)
select workflow_id as id, case when unsuccessful = 0 then 'succeeded' else 'canceled' end as state
from counted
where finished_at = now();

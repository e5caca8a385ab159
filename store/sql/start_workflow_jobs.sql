-- Make jobs due for which nothing is missing any more: those after the jobs $1, the last ones
-- of the workflows $2, and all of the workflows $3. A delay begins now. Jobs that are held, or
-- whose workflow is held or canceled, stay as they are. The scheduler queues the others: they
-- stay created. Returns them.
-- Clock: clock_timestamp(), read once: the transaction may have waited for its turn since it
-- began, and a delay must not be shorter for that.
-- Locks: timer rows in the order of the jobs, then ledger rows.
-- Index: workflow_edges_pkey, workflow_jobs_pkey, workflow_jobs_position, workflows_pkey,
-- timers_pkey, jobs_pkey.
with named as materialized (
    select e.job_id
    from unnest($1::uuid[]) as i (job_id)
    cross join lateral (select w.job_id from workflow_edges w where w.after_id = i.job_id offset 0) e
    union
    select w.on_complete from workflows w where w.workflow_id = any ($2::uuid[]) and w.remaining = 0
    union
    select wj.job_id from workflow_jobs wj where wj.workflow_id = any ($3::uuid[]) and wj.missing = 0 and wj.ended is null
), clock as materialized (
    select clock_timestamp() as at
), free as materialized (
    select t.job_id, greatest(coalesce(wj.run_at, c.at + wj.delay), c.at) as run_at
    from clock c
    cross join (select job_id from named order by job_id) n
    cross join lateral (
        select m.workflow_id, m.run_at, m.delay from workflow_jobs m
        where m.job_id = n.job_id and m.missing = 0 and m.ended is null and m.run_at is distinct from 'infinity'
        offset 0
    ) wj
    cross join lateral (
        select from workflows w where w.workflow_id = wj.workflow_id and not w.held and w.canceled_at is null offset 0
    ) w
    cross join lateral (
        select l.job_id from timers l where l.job_id = n.job_id and l.run_at = 'infinity' for update
    ) t
), due as (
    update timers t
    set run_at = f.run_at
    from free f
    where t.job_id between f.job_id and f.job_id
    returning t.job_id, t.run_at
)
update jobs j
set run_at = d.run_at, updated_at = now()
from due d
where j.job_id between d.job_id and d.job_id
returning j.job_id;

-- Delete those of the next $2 finished workflows after $1 of which no job is in the ledger any
-- more, and of others with a key that finished more recently than $3 ago, or of all if that is
-- null, all but the key and its hash. Returns the workflows that it has looked at, in their order.
-- Clock: now().
-- Locks: the rows that it deletes, which nobody changes.
-- Index: workflows_pkey, workflow_jobs_position, jobs_pkey, workflow_edges_job.
with looked as materialized (
    select w.workflow_id, w.finished_at,
        w.idempotency_key is not null and not coalesce(w.finished_at <= now() - $3::interval, false) as needed
    from workflows w
    where w.workflow_id > $1
    order by w.workflow_id
    limit $2
), gone as materialized (
    select l.workflow_id, l.needed
    from looked l
    where l.finished_at is not null and not exists (
        select from workflow_jobs wj
        cross join lateral (select from jobs j where j.job_id = wj.job_id offset 0) j
        where wj.workflow_id = l.workflow_id
    )
), members as (
    delete from workflow_jobs wj using gone g where wj.workflow_id = g.workflow_id
    returning wj.job_id
), edges as (
    delete from workflow_edges e using members m where e.job_id = m.job_id
), deleted as (
    delete from workflows w using gone g where w.workflow_id = g.workflow_id and not g.needed
), blanked as (
    update workflows w set name = null from gone g where w.workflow_id = g.workflow_id and g.needed and w.name is not null
)
select workflow_id from looked order by workflow_id;

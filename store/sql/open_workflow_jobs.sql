-- Up to $3 jobs of the workflow $1 in one of the states $2 of the ledger. Left out are those that
-- are held, dead ones that were erased, and those that run; if $4, only those that run and are asked to stop.
-- Index: workflow_jobs_position, jobs_pkey, leases_pkey.
select wj.job_id
from workflow_jobs wj
cross join lateral (
    select from jobs j
    where j.job_id = wj.job_id and j.state::text = any ($2::text[]) and j.run_at < 'infinity'
        and (j.state <> 'dead' or j.erased_at is null)
    offset 0
) j
where wj.workflow_id = $1 and wj.ended is null
    and not exists (select from leases l where l.job_id = wj.job_id and (l.cancel_requested or not $4))
order by wj.position
limit $3;

-- Take up to $1 ends out of the follower's inbox, with the jobs that have ended. A job that
-- was requeued has a row for each time that it ended. missing says that the job is not in
-- the ledger any more.
-- Locks: the rows taken, which nobody else changes. The caller is the one who follows.
-- Index: none on the inbox, which is read whole; jobs_pkey.
with taken as (
    delete from ends e where e.ctid = any (array(select ctid from ends limit $1))
    returning e.job_id, e.state, e.at
)
select t.job_id as id, t.state::text as state, t.at, j.job_id is null as missing,
    coalesce(j.job_type, '') as type, coalesce(j.tenant, '') as tenant, coalesce(j.tags, '{}') as tags,
    j.callback_url is not null as called_back
from taken t
left join lateral (
    select l.job_id, l.job_type, l.tenant, l.tags, l.callback_url from jobs l where l.job_id = t.job_id offset 0
) j on true
order by t.at, t.job_id;

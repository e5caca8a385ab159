-- Up to $2 ends that could not be announced $1 ago or earlier, to be tried again.
-- missing says that the job is not in the ledger any more.
-- Clock: now().
-- Index: none on the list, which is read whole; jobs_pkey.
with taken as (
    select job_id, state, at from undelivered where given_up_at is null and tried_at <= now() - $1::interval limit $2
)
select t.job_id as id, t.state::text as state, t.at, j.job_id is null as missing,
    coalesce(j.job_type, '') as type, coalesce(j.tenant, '') as tenant, coalesce(j.tags, '{}') as tags,
    j.callback_url is not null as called_back
from taken t
left join lateral (
    select l.job_id, l.job_type, l.tenant, l.tags, l.callback_url from jobs l where l.job_id = t.job_id offset 0
) j on true
order by t.at, t.job_id;

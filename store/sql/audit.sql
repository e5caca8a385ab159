-- Jobs whose ledger state and list disagree: there should be none.
-- Index: reads everything; for tests and for operators who suspect something.
with listed as (
    select job_id, 'ready' as list from ready
    union all select job_id, 'leases' from leases
    union all select job_id, 'timers' from timers
    union all select job_id, 'dead_letters' from dead_letters
)
select coalesce(j.job_id, l.job_id) as job_id, coalesce(j.state::text, 'absent') as state,
    coalesce(l.list, 'none') as list
from jobs j
full join listed l on l.job_id = j.job_id
where coalesce(l.list, 'none') is distinct from case j.state
    when 'queued' then 'ready'
    when 'running' then 'leases'
    when 'created' then 'timers'
    when 'retry' then 'timers'
    when 'dead' then 'dead_letters'
    when 'succeeded' then 'none'
    when 'canceled' then 'none'
end
order by 1
limit $1;

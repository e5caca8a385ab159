-- Jobs whose ledger row and list row disagree, in the state or in any other column
-- that both have. There should be none. A running job is queued in the ledger, and
-- its lease has the next fence.
-- Index: reads everything; for tests, and for operators who suspect a fault.
-- 0.9 s for a million jobs that wait, 0.5 s for a million that are done.
with listed as (
    select job_id, 'ready' as list, null::job_state as state, job_type, null as tenant, -urgency as priority, run_at as at,
        attempt, null::bigint as fence
    from ready
    union all
    select job_id, 'timers', state, job_type, null, null, run_at, attempt, null from timers
    union all
    select job_id, 'leases', null, null, null, null, null, null, fence - 1 from leases
    union all
    select job_id, 'dead_letters', null, job_type, tenant, null, dead_at, null, null from dead_letters
), ledger as (
    select j.job_id, j.job_type, j.tenant, j.priority, j.run_at, j.attempt, j.fence, j.finished_at,
        case when j.state = 'queued' and l.job_id is not null then 'running' else j.state end as state
    from jobs j
    left join leases l on l.job_id = j.job_id
)
select coalesce(j.job_id, l.job_id) as job_id, coalesce(j.state::text, 'absent') as state,
    coalesce(l.list, 'none') as list,
    concat_ws(', ',
        case when l.state <> j.state then 'state' end,
        case when l.job_type <> j.job_type then 'job_type' end,
        case when l.tenant <> j.tenant then 'tenant' end,
        case when l.priority <> j.priority then 'urgency' end,
        case when l.attempt <> j.attempt then 'attempt' end,
        case when l.fence <> j.fence then 'fence' end,
        case l.list
            when 'dead_letters' then case when l.at <> j.finished_at then 'dead_at' end
            else case when l.at <> j.run_at then 'run_at' end
        end) as differs
from ledger j
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
    or l.at <> case l.list when 'dead_letters' then j.finished_at else j.run_at end
    or l.state <> j.state or l.job_type <> j.job_type or l.tenant <> j.tenant or l.priority <> j.priority
    or l.attempt <> j.attempt or l.fence <> j.fence
order by 1
limit $1;

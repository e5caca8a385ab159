-- Jobs whose ledger row and list row disagree, in the state or in any other column
-- that both have. There should be none. A running job is queued in the ledger, and
-- its lease has the next fence. A job with a turn has a virtual time in its list. A queued
-- job that is listed twice shows as in both ready and parked. A job that waits and expires
-- has an entry in expiries.
-- Index: reads everything; for tests, and for operators who suspect a fault.
-- 0.9 s for a million jobs that wait, 0.5 s for a million that are done.
with listed as (
    select job_id, 'ready' as list, null::job_state as state, job_type, null as tenant, -urgency as priority,
        case when turn then null else run_at end as at, attempt, null::bigint as fence, null::text[] as gates
    from ready
    union all
    select job_id, 'parked', null, job_type, tenant, -urgency, case when turn then null else position end, attempt, null, gates
    from parked
    union all
    select job_id, 'ready and parked', null, null, null, null, null, null, null, null
    from (select job_id from ready union all select job_id from parked) queued
    where exists (select from parked) or exists (select from ready where turn)
    group by job_id
    having count(*) > 1
    union all
    select job_id, 'timers', state, job_type, null, null, run_at, attempt, null, null from timers
    union all
    select job_id, 'leases', null, null, null, null, null, null, fence - 1, null from leases
    union all
    select job_id, 'dead_letters', null, job_type, tenant, null, dead_at, null, null, null from dead_letters
), ledger as (
    select j.job_id, j.job_type, j.tenant, j.priority, j.run_at, j.attempt, j.fence, j.finished_at, j.gates,
        j.expires_at is not null and j.state in ('created', 'queued') and l.job_id is null
            and not exists (select from expiries e where e.job_id = j.job_id and e.expires_at = j.expires_at) as never_expires,
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
        case when l.list = 'parked' and l.gates is distinct from j.gates then 'gates' end,
        case when j.never_expires then 'expires_at' end,
        case l.list
            when 'dead_letters' then case when l.at <> j.finished_at then 'dead_at' end
            else case when l.at <> j.run_at then 'run_at' end
        end) as differs
from ledger j
full join listed l on l.job_id = j.job_id
where coalesce(l.list, 'none') is distinct from case j.state
        when 'queued' then case when l.list = 'parked' then 'parked' else 'ready' end
        when 'running' then 'leases'
        when 'created' then 'timers'
        when 'retry' then 'timers'
        when 'dead' then 'dead_letters'
        when 'succeeded' then 'none'
        when 'canceled' then 'none'
    end
    or l.at <> case l.list when 'dead_letters' then j.finished_at else j.run_at end
    or l.state <> j.state or l.job_type <> j.job_type or l.tenant <> j.tenant or l.priority <> j.priority
    or l.attempt <> j.attempt or l.fence <> j.fence or l.list = 'parked' and l.gates is distinct from j.gates or j.never_expires
order by 1
limit $1;

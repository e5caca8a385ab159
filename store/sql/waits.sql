-- Where a waiting job stands: the lane that it is parked in, how many jobs come first in its
-- lane or its queue (counted up to $2), and who serves its type. A ready job is searched
-- where the ledger says that it is, or among those with a turn. No row for a job that does
-- not wait.
-- Clock: now().
-- Index: jobs_pkey, leases_pkey, parked_pkey, type_owners_pkey; ready_pkey or ready_turn; the
-- jobs before it by parked_order or ready_pkey, backward from the job.
select now() as at, j.state::text as state, j.job_type as type, j.tenant,
    coalesce((select o.plugin from type_owners o where o.job_type = j.job_type), '') as plugin,
    nullif(j.run_at, 'infinity') as due_at, coalesce(p.lane, '') as lane, coalesce(p.capacity, 0) as capacity,
    case
        when p.job_id is not null then (
            select count(*) from (
                select from parked b
                where b.lane = p.lane and (b.urgency, b.position, b.job_id) < (p.urgency, p.position, p.job_id)
                order by b.urgency desc, b.position desc, b.job_id desc
                limit $2
            ) before
        )
        when r.urgency is not null then (
            select count(*) from (
                select from ready b
                where b.job_type = j.job_type and (b.urgency, b.run_at, b.job_id) < (r.urgency, r.run_at, j.job_id)
                order by b.urgency desc, b.run_at desc, b.job_id desc
                limit $2
            ) before
        )
        else 0
    end as ahead,
    exists (
        select from workers w
        cross join json_array_elements(case json_typeof(w.plugins) when 'array' then w.plugins else '[]' end) pool
        cross join json_array_elements_text(
            case json_typeof(pool -> 'jobTypes') when 'array' then pool -> 'jobTypes' else '[]' end) kind
        where w.stopped_at is null and w.alive_until > now() and kind = j.job_type
    ) as served
from jobs j
left join leases l on l.job_id = $1
left join parked p on p.job_id = $1
left join lateral (
    select q.urgency, q.run_at
    from ready q
    where q.job_type = j.job_type and q.urgency = -j.priority and q.run_at = j.run_at and q.job_id = j.job_id
    union all
    select q.urgency, q.run_at from ready q where q.job_id = j.job_id and q.turn
    limit 1
) r on p.job_id is null and j.state = 'queued'
where j.job_id = $1 and l.job_id is null and j.state in ('created', 'queued', 'retry');

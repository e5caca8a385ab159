-- Makes workflows of ten jobs each: $1 of jobs that have succeeded, and $2 of a dead one and nine
-- that wait for it.
with ended as (
    select job_id, tenant, created_at, row_number() over (order by job_id) as number
    from (select job_id, tenant, created_at from jobs where state = 'succeeded' limit 10 * $1::integer) j
), waiting as (
    select job_id, tenant, created_at, row_number() over (order by job_id) as number
    from (select job_id, tenant, created_at from jobs where state = 'created' and run_at = 'infinity' limit 9 * $2::integer) j
), dead as (
    select job_id, tenant, created_at, row_number() over (order by job_id) as number
    from (select job_id, tenant, created_at from jobs j where exists (select from dead_letters d where d.job_id = j.job_id) limit $2) j
), members as (
    select job_id, tenant, created_at, (number - 1) / 10 as workflow, (number - 1) % 10 as position, true as finished, false as dead
    from ended
    union all
    select job_id, tenant, created_at, $1 + (number - 1) / 9, 1 + (number - 1) % 9, false, false
    from waiting
    union all
    select job_id, tenant, created_at, $1 + number - 1, 0, false, true
    from dead
), named as (
    select m.*, (lpad(to_hex((extract(epoch from min(created_at) over (partition by workflow)) * 1000)::bigint), 12, '0')
        || '7002' || '8' || lpad(to_hex(workflow), 15, '0'))::uuid as workflow_id
    from members m
), made as (
    insert into workflows (workflow_id, tenant, name, request_hash, created_at, jobs, remaining, unsuccessful, deaths, completed, finished_at)
    select workflow_id, min(tenant), 'nightly-' || min(workflow) % 50, decode(md5(workflow_id::text) || md5(workflow_id::text), 'hex'),
        min(created_at), count(*), case when bool_and(finished) then 0 else count(*) end, 0, count(*) filter (where dead),
        true, case when bool_and(finished) then max(created_at) end
    from named
    group by workflow_id
), joined as (
    insert into workflow_jobs (job_id, workflow_id, position, name, on_death, missing, ended)
    select job_id, workflow_id, position, 'step-' || position, 'wait',
        case when finished or position = 0 then 0 else 1 end, case when finished then 'succeeded'::job_state end
    from named
)
insert into workflow_edges (after_id, job_id, position)
select p.job_id, n.job_id, 0
from named n
join named p using (workflow_id)
where p.position = 0 and n.position > 0;

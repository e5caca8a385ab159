-- The jobs before each of the jobs $1, in their order, and their results, up to $2 bytes for
-- each job. For the last job of a workflow, these are all others. Results are read in portions
-- that cannot have much more than 1 MiB, until they have $2 bytes: compression makes them at
-- most 256 times smaller, and none has much more than 1 MiB.
-- Index: workflow_edges_job, workflow_jobs_pkey, workflow_jobs_position, jobs_pkey.
with recursive before as (
    select e.job_id, e.after_id, e.position from workflow_edges e where e.job_id = any ($1::uuid[])
    union all
    select w.on_complete, wj.job_id, wj.position
    from workflow_jobs o
    join workflows w on w.workflow_id = o.workflow_id and w.on_complete = o.job_id
    join workflow_jobs wj on wj.workflow_id = w.workflow_id and wj.job_id <> o.job_id
    where o.job_id = any ($1::uuid[])
), stored as materialized (
    select b.job_id, b.after_id, b.position, p.name, p.ended = 'succeeded' as succeeded, j.result is not null as has_result,
        sum(least(256 * coalesce(pg_column_size(j.result), 0)::bigint, 1048576)) over (partition by b.job_id order by b.position)
            / 1048576 as part
    from before b
    join workflow_jobs p on p.job_id = b.after_id
    left join jobs j on j.job_id = b.after_id
), walk as (
    select i.job_id, 0::bigint as part, 0::bigint as bytes, (select floor(max(s.part)) from stored s where s.job_id = i.job_id)::bigint as last
    from unnest($1::uuid[]) as i (job_id)
    union all
    select w.job_id, w.part + 1, w.bytes + r.bytes, w.last
    from walk w
    cross join lateral (
        select coalesce(sum(octet_length(j.result::text)), 0)::bigint as bytes
        from stored s
        cross join lateral (select l.result from jobs l where l.job_id = s.after_id offset 0) j
        where s.job_id = w.job_id and floor(s.part) = w.part
    ) r
    where w.part < w.last and w.bytes + r.bytes <= $2
), reached as (
    select job_id, max(part) as part from walk group by job_id
), likely as materialized (
    select s.*, floor(s.part) <= r.part as likely
    from stored s
    join reached r on r.job_id = s.job_id
), read as (
    select s.*, j.result::text as result,
        sum(coalesce(octet_length(j.result::text), 0)) over (partition by s.job_id order by s.position) <= $2 as fits
    from likely s
    left join jobs j on s.likely and j.job_id = s.after_id
)
select job_id as of_id, after_id as id, coalesce(name, '') as name, coalesce(succeeded, false) as succeeded,
    case when likely and fits then result end as result, has_result and not (likely and fits) as omitted
from read
order by job_id, position;

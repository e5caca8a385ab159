-- The job $1, or its first ancestor if $2, and its descendants, down to the depth $4, at most
-- $5 of them: the nearest ones. At most $3 ancestors are followed. PostgreSQL makes the
-- generations one after the other, and stops when it has as many rows as are asked for.
-- Index: jobs_pkey, jobs_parent, leases_pkey.
with recursive ancestors as (
    select job_id, parent_id, 0 as height from jobs where job_id = $1
    union all
    select j.job_id, j.parent_id, a.height + 1
    from ancestors a
    cross join lateral (
        select p.job_id, p.parent_id from jobs p where p.job_id = a.parent_id offset 0
    ) j
    where $2 and a.height < $3
), family as (
    (select job_id, parent_id, 0 as depth from ancestors order by height desc limit 1)
    union all
    select j.job_id, f.job_id, f.depth + 1
    from family f
    cross join lateral (
        select c.job_id from jobs c where c.parent_id = f.job_id order by c.parent_id, c.job_id offset 0
    ) j
    where f.depth < $4
), chosen as (
    select job_id, parent_id, depth from family limit $5
)
select j.job_id as id, j.job_type as type, j.tenant, j.state::text as state, j.created_at, j.updated_at, j.started_at,
    j.finished_at, c.parent_id as parent, c.depth
from chosen c
cross join lateral (
    select * from current_jobs j where j.job_id = c.job_id offset 0
) j
order by c.depth, j.job_id;

-- Types with ready or parked jobs that no live worker serves, with the number of jobs
-- (of ready ones, counted up to 1000) and the age of the oldest, at most a century.
-- Clock: now().
-- Index: ready_pkey; one probe for each type, by a loose scan. jobs_pkey for ready jobs with
-- a turn, whose list row does not have their due time. parked is read whole.
with recursive kinds as (
    (select job_type from ready order by job_type limit 1)
    union all
    select (select r.job_type from ready r where r.job_type > k.job_type order by r.job_type limit 1)
    from kinds k
    where k.job_type is not null
), served as (
    select kind
    from workers w
    cross join json_array_elements(case json_typeof(w.plugins) when 'array' then w.plugins else '[]' end) pool
    cross join json_array_elements_text(
        case json_typeof(pool -> 'jobTypes') when 'array' then pool -> 'jobTypes' else '[]' end) kind
    where w.stopped_at is null and w.alive_until > now()
), claimable as (
    select k.job_type, first.jobs, first.due
    from kinds k
    cross join lateral (
        select count(*) as jobs, min(queued.run_at) as due
        from (
            select case when r.turn then (select j.run_at from jobs j where j.job_id = r.job_id) else r.run_at end as run_at
            from ready r
            where r.job_type = k.job_type
            limit 1000
        ) queued
    ) first
    where first.jobs > 0
), at_gates as (
    select job_type, count(*) as jobs, min(case when turn then parked_at else position end) as due
    from parked
    group by job_type
)
select job_type, sum(jobs)::bigint as jobs, least(now() - min(due), interval '36500 days') as oldest
from (select * from claimable union all select * from at_gates) waiting
where job_type not in (select kind from served)
group by job_type
order by oldest desc, job_type;

-- Types with queued jobs that no live worker serves, with the number of jobs (counted
-- up to 1000) and the age of the oldest, at most a century.
-- Clock: now().
-- Index: ready_pkey; one probe for each type, by a loose scan.
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
)
select k.job_type, waiting.jobs, waiting.oldest
from kinds k
cross join lateral (
    select count(*) as jobs, least(now() - min(queued.run_at), interval '36500 days') as oldest
    from (select r.run_at from ready r where r.job_type = k.job_type limit 1000) queued
) waiting
where waiting.jobs > 0 and k.job_type not in (select kind from served)
order by waiting.oldest desc, k.job_type;

-- Types with ready jobs that have waited longer than $1, with the number of jobs
-- (counted up to 1000) and the age of the oldest. It is at most a century: more would not
-- fit the program's durations.
-- Clock: now().
-- Index: ready_pkey; one probe for each type, by a loose scan. jobs_pkey for jobs with a
-- turn, whose list row does not have their due time.
with recursive kinds as (
    (select job_type from ready order by job_type limit 1)
    union all
    select (select r.job_type from ready r where r.job_type > k.job_type order by r.job_type limit 1)
    from kinds k
    where k.job_type is not null
)
select k.job_type as type, waiting.jobs, waiting.oldest
from kinds k
cross join lateral (
    select count(*) as jobs, least(now() - min(queued.run_at), interval '36500 days') as oldest
    from (
        select case when r.turn then (select j.run_at from jobs j where j.job_id = r.job_id) else r.run_at end as run_at
        from ready r
        where r.job_type = k.job_type
        limit 1000
    ) queued
) waiting
where k.job_type is not null and waiting.oldest > $1::interval
order by k.job_type;

-- What retention and erasures have left undone: walks of the deleter that nobody has gone on
-- with for $1, jobs whose time was over $2 ago, such as the one named, and erasures that
-- nobody has gone on with for $1. Jobs that others still need, by the question of
-- delete_ended.sql, are not overdue. It looks at the first 50,000 jobs of each walk.
-- Clock: now().
-- Index: jobs_pkey, dead_letters_dead_at, erasures_unfinished, workflow_jobs_pkey,
-- workflows_pkey; retention has two rows, and ends and undelivered are small.
with needed as materialized (
    select w.job_id
    from (select job_id from ends union all select job_id from undelivered where given_up_at is null) w
    limit 100000
), looked as (
    select 'ended' as walk, j.job_id, j.job_type, j.state, j.finished_at, j.erased_at, j.followed
    from (select * from jobs order by job_id limit 50000) j
    where j.state in ('succeeded', 'canceled')
    union all
    select 'dead', j.job_id, j.job_type, j.state, j.finished_at, j.erased_at, j.followed
    from (select job_id from dead_letters order by dead_at, job_id limit 50000) d
    join jobs j on j.job_id = d.job_id
), overdue as (
    select l.walk, l.job_id, now() - l.finished_at - interval '1 microsecond' * ((
        coalesce(r.policies -> 'Types' -> l.job_type, r.policies -> 'Default') ->> initcap(l.state::text)
    )::bigint / 1000) as late
    from looked l
    join retention r on r.walk = l.walk
    where l.erased_at is null and (l.followed is null or (select count(*) < 100000 from needed) and l.job_id not in (select n.job_id from needed n) and not exists (
        select from (select wj.workflow_id from workflow_jobs wj where wj.job_id = l.job_id offset 0) member
        join workflows w on w.workflow_id = member.workflow_id
        where w.finished_at is null
    ))
)
select 'silent' as finding, walk as what, now() - worked_at as lasted from retention where worked_at < now() - $1::interval
union all
select 'overdue', min(job_id::text), max(late) from overdue where late > $2::interval group by walk
union all
select 'erasure', erasure_id::text, now() - updated_at from erasures where finished_at is null and updated_at < now() - $1::interval
order by finding, what;

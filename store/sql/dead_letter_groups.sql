-- The groups of dead letters that have a job type and a fingerprint in common: up to $2 and
-- one more, by type and fingerprint. Of type $1 unless it is empty. Counts each up to $3,
-- and shows $4 samples, the versions of its $5 latest, and how many of its $6 latest died in
-- each of the last 24 hours, oldest first, if any did. The statement jumps from group to group
-- and reads no more of each than that, so a million cost no more than a few. Only the $5 latest
-- are read from the table, which may be far from memory; the rest is in the index.
-- Clock: now().
-- Index: dead_letters_group, jobs_pkey, unsuccessful_attempts_pkey.
with recursive walk as (
    (
        select job_type, fingerprint, 1 as number
        from dead_letters
        where fingerprint >= '' and (job_type, fingerprint) >= ($1::text, '')
        order by job_type, fingerprint
        limit 1
    )
    union all
    select next.job_type, next.fingerprint, w.number + 1
    from walk w
    cross join lateral (
        select d.job_type, d.fingerprint
        from dead_letters d
        where d.fingerprint >= '' and (d.job_type, d.fingerprint) > (w.job_type, w.fingerprint)
        order by d.job_type, d.fingerprint
        limit 1
    ) next
    where w.number <= $2 and ($1 = '' or w.job_type = $1)
)
select g.job_type as type, newest.code, g.fingerprint, counted.jobs, oldest.dead_at as first_dead_at, newest.last_dead_at,
    newest.versions, newest.samples, coalesce(example.error, '') as error,
    case when recent.hours is null then '{}' else array(
        select count(hour)::bigint
        from generate_series(23, 0, -1) ago
        left join unnest(recent.hours) hour on hour = ago
        group by ago
        order by ago desc
    ) end as recent
from walk g
cross join lateral (
    select count(*)::integer as jobs
    from (
        select
        from dead_letters d
        where d.job_type = g.job_type and d.fingerprint = g.fingerprint and d.fingerprint >= ''
        limit $3
    ) d
) counted
cross join lateral (
    select d.dead_at
    from dead_letters d
    where d.fingerprint >= '' and (d.job_type, d.fingerprint) >= (g.job_type, g.fingerprint)
    order by d.job_type, d.fingerprint, d.dead_at, d.job_id
    limit 1
) oldest
cross join lateral (
    select max(d.error_code) filter (where d.number = 1) as code, max(d.dead_at) as last_dead_at,
        coalesce(array_agg(distinct d.plugin_version) filter (where d.plugin_version <> ''), '{}') as versions,
        array_agg(d.job_id order by d.number) filter (where d.number <= $4) as samples,
        (array_agg(d.job_id order by d.number) filter (where d.erased is not true))[1] as example
    from (
        select n.*, row_number() over () as number
        from (
            select d.job_id, d.dead_at, d.error_code, d.plugin_version, d.erased
            from dead_letters d
            where d.job_type = g.job_type
                and d.fingerprint >= '' and d.fingerprint >= g.fingerprint and d.fingerprint <= g.fingerprint
            order by d.fingerprint desc, d.dead_at desc, d.job_id desc
            limit $5
        ) n
    ) d
) newest
cross join lateral (
    select array_agg(floor(extract(epoch from now() - d.dead_at) / 3600)::integer)
        filter (where d.dead_at > now() - interval '24 hours' and d.dead_at <= now()) as hours
    from (
        select d.dead_at
        from dead_letters d
        where d.job_type = g.job_type
            and d.fingerprint >= '' and d.fingerprint >= g.fingerprint and d.fingerprint <= g.fingerprint
        order by d.fingerprint desc, d.dead_at desc
        limit $6
    ) d
) recent
left join lateral (
    select a.error
    from jobs j
    join unsuccessful_attempts a on a.job_id = j.job_id and a.fence = j.fence
    where j.job_id = newest.example
    limit 1
) example on true
where ($1 = '' or g.job_type = $1);

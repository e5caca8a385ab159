-- dead_letter_groups for the tenant $7.
-- Clock: now().
-- Index: dead_letters_tenant_group, jobs_pkey, unsuccessful_attempts_pkey.
with recursive walk as (
    (
        select tenant, job_type, fingerprint, 1 as number
        from dead_letters
        where fingerprint >= '' and (tenant, job_type, fingerprint) >= ($7::text, $1::text, '')
        order by tenant, job_type, fingerprint
        limit 1
    )
    union all
    select next.tenant, next.job_type, next.fingerprint, w.number + 1
    from walk w
    cross join lateral (
        select d.tenant, d.job_type, d.fingerprint
        from dead_letters d
        where d.fingerprint >= '' and (d.tenant, d.job_type, d.fingerprint) > (w.tenant, w.job_type, w.fingerprint)
        order by d.tenant, d.job_type, d.fingerprint
        limit 1
    ) next
    where w.number <= $2 and ($1 = '' or w.job_type = $1) and w.tenant = $7
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
        where d.tenant = g.tenant and d.job_type = g.job_type and d.fingerprint = g.fingerprint and d.fingerprint >= ''
        limit $3
    ) d
) counted
cross join lateral (
    select d.dead_at
    from dead_letters d
    where d.fingerprint >= '' and (d.tenant, d.job_type, d.fingerprint) >= (g.tenant, g.job_type, g.fingerprint)
    order by d.tenant, d.job_type, d.fingerprint, d.dead_at, d.job_id
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
            where d.tenant = g.tenant and d.job_type = g.job_type
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
        where d.tenant = g.tenant and d.job_type = g.job_type
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
where ($1 = '' or g.job_type = $1) and g.tenant = $7;

-- What a process must know of the others, without asking for each by itself: the live processes,
-- counted by their roles and by what they serve, without those that are asked to take no more
-- jobs; the workers on host $1, other than $2, that have not signed off and may still hold leases;
-- whether there is a lease to take over; and a number that changes with each job type that is
-- declared, since rows of job types are never deleted and later transactions have higher ids.
-- Clock: now().
-- Index: none; a handful of workers and job types. leases is read whole, as by reap, which is as
-- small as the number of running jobs.
select
    (
        select coalesce(json_agg(p), '[]')
        from (
            select roles, plugins::text as plugins, count(*) as processes
            from workers
            where stopped_at is null and alive_until > now() and drain_asked_at is null
            group by roles, plugins::text
        ) p
    ) as live,
    (
        select coalesce(json_agg(w), '[]')
        from (
            select worker_id as id, host, pid, pid_started, roles
            from workers
            where host = $1 and worker_id <> $2 and stopped_at is null
                and (alive_until > now() or exists (select from leases l where l.worker_id = workers.worker_id))
        ) w
    ) as neighbours,
    exists (
        select
        from leases l
        where case
            when l.kept then l.worker_id not in (select worker_id from workers where alive_until > now())
            else l.expires_at <= now()
        end
    ) as lease_expired,
    (select coalesce(sum(xmin::text::bigint), 0)::bigint from job_types) as types_version;

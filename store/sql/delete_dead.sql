-- Retention of dead jobs: like delete_ended.sql, but it looks at the next $6 dead letters in
-- the order of death. $2 is the time since a job's death, $3 that of its key, and nothing
-- younger than $5 is looked at; $4 are the policies.
-- Clock: now().
-- Locks: the advisory lock of delete_ended.sql; $8 is the process's name. Then dead letters,
-- then ledger rows, as a requeue does; it skips locked ones: they are found the next time round.
-- Index: workflow_jobs_pkey, workflows_pkey; dead_letters_dead_at, jobs_pkey, unique_keys_job,
-- unsuccessful_attempts_pkey, attempt_logs_pkey, expiries_pkey, retention_pkey. ends and
-- undelivered are read whole, but they are small. Of more than 100,000 ends no hash is made:
-- then all followed jobs stay.
with mine as materialized (
    select pg_try_advisory_xact_lock(4653017) as locked
), walk as materialized (
    select
        case when not $7::boolean and r.policies = $4::jsonb then r.at else '-infinity' end as at,
        case when not $7::boolean and r.policies = $4::jsonb then r.job_id else '00000000-0000-0000-0000-000000000000' end as job_id,
        case when not $7::boolean and r.policies = $4::jsonb then r.began_at else now() end as began_at,
        case when r.policies = $4::jsonb then r.caught_up_at else now() end as caught_up_at
    from (select) once
    left join retention r on r.walk = 'dead'
    where (select locked from mine)
        and not coalesce(r.worker_id <> $8::text and r.worked_at > now() - interval '10 seconds', false)
), over as materialized (
    select array(select now() - t.keep from unnest($2::interval[]) with ordinality as t (keep, nth) order by nth) as dead,
        array(select now() - t.keep from unnest($3::interval[]) with ordinality as t (keep, nth) order by nth) as keys
), next as materialized (
    select d.job_id, d.dead_at, d.dead_at <= ((select dead from over))[coalesce(array_position($1::text[], d.job_type), 1)] as due
    from dead_letters d
    where (d.dead_at, d.job_id) > ((select w.at from walk w), (select w.job_id from walk w)) and d.dead_at <= now() - $5::interval
    order by d.dead_at, d.job_id
    limit $6::integer for update skip locked
), needed as materialized (
    select w.job_id
    from (select job_id from ends union all select job_id from undelivered where given_up_at is null) w
    limit 100000
), last as materialized (
    select n.dead_at, n.job_id from next n order by n.dead_at, n.job_id offset $6::integer - 1 limit 1
), old as materialized (
    select j.job_id, n.dead_at, j.late, j.needed
    from next n
    cross join lateral (
        select j.job_id,
            ((select dead from over))[coalesce(array_position($1::text[], j.job_type), 1)] - j.finished_at as late,
            j.idempotency_key is not null
                    and not coalesce(j.finished_at <= ((select keys from over))[coalesce(array_position($1::text[], j.job_type), 1)], false)
                or (select u.job_id from unique_keys u where u.job_id = j.job_id and u.expires_at is not null and u.expires_at > now() limit 1) is not null
                as needed
        from jobs j
        where n.due and j.job_id = n.job_id and j.state = 'dead'
            and (j.followed is null or (select count(*) < 100000 from needed) and j.job_id not in (select n.job_id from needed n) and not exists (
            select from (select wj.workflow_id from workflow_jobs wj where wj.job_id = j.job_id offset 0) member
            join workflows w on w.workflow_id = member.workflow_id
            where w.finished_at is null
        ))
            and (j.erased_at is null or not (
                j.idempotency_key is not null
                    and not coalesce(j.finished_at <= ((select keys from over))[coalesce(array_position($1::text[], j.job_type), 1)], false)
                or (select u.job_id from unique_keys u where u.job_id = j.job_id and u.expires_at is not null and u.expires_at > now() limit 1) is not null
            ))
        for update skip locked
    ) j
), blanked as (
    update jobs j
    set payload = 'null', result = null, progress = null, checkpoint = null, last_error = null, tags = '{}',
        trace_parent = '', trace_state = '', callback_url = null, erased_at = now()
    from old o
    where o.needed and j.job_id = o.job_id
    returning j.job_id
), forbidden as (
    update dead_letters d set erased = true, error_code = '', fingerprint = ''
    from old o
    where o.needed and d.dead_at between o.dead_at and o.dead_at and d.job_id between o.job_id and o.job_id
), deleted as (
    delete from jobs j using old o
    where not o.needed and j.job_id = o.job_id
    returning j.job_id
), unlisted as (
    delete from dead_letters d using old o
    where not o.needed and d.dead_at between o.dead_at and o.dead_at and d.job_id between o.job_id and o.job_id
), attempts as (
    delete from unsuccessful_attempts a using old o where a.job_id between o.job_id and o.job_id
), logs as (
    delete from attempt_logs l using old o where l.job_id between o.job_id and o.job_id
), expiring as (
    delete from expiries e using old o where e.job_id between o.job_id and o.job_id
), marked as (
    insert into retention as r (walk, policies, at, job_id, began_at, worker_id, worked_at, caught_up_at)
    select 'dead', $4::jsonb, coalesce(n.dead_at, w.at), coalesce(n.job_id, w.job_id), w.began_at, $8::text, now(),
        case when (select l.job_id from last l) is null then now() else w.caught_up_at end
    from walk w
    left join (select dead_at, job_id from next order by dead_at desc, job_id desc limit 1) n on true
    on conflict (walk) do update
    set policies = excluded.policies, at = excluded.at, job_id = excluded.job_id, began_at = excluded.began_at,
        worker_id = excluded.worker_id, worked_at = excluded.worked_at, caught_up_at = excluded.caught_up_at
)
select w.job_id is not null as mine, (select l.job_id from last l) is null as reached,
    coalesce(now() - w.began_at, interval '0') as walked,
    case when (select l.job_id from last l) is null then interval '0' else coalesce(now() - w.caught_up_at, interval '0') end as behind,
    0::bigint as deleted_succeeded, 0::bigint as deleted_canceled, (select count(*) from deleted) as deleted_dead,
    0::bigint as blanked_succeeded, 0::bigint as blanked_canceled, (select count(*) from blanked) as blanked_dead,
    (select max(late) from old) as late
from (select) once
left join walk w on true;

-- Retention of jobs that have succeeded or were canceled. Look at the next $7 jobs in the
-- order of creation, from where the last look ended, or from the first if $8 is set or if it
-- worked by other policies than $5. Of those with an id below $6, delete the jobs whose time
-- is over, with their attempts and logs. Blank those whose idempotency key must be kept for
-- longer, or that still keep a unique job out: then their key is all that is left of them.
-- Jobs that others still need stay: those whose end the follower has not told yet, or will
-- try to announce again, and those of a workflow that has not finished.
-- Times since the end of a job, each null for ever: $2 if it has succeeded, $3 if it was
-- canceled, and $4 for its key. Each has one element for each type in $1. The first is for
-- all other types.
-- Returns one row: whether it was this process's turn, whether nothing is left to look at,
-- what was done, and how much later than due at worst.
-- Clock: now().
-- Locks: an advisory lock of the transaction, so that one process works at a time; $9 is
-- its name, and another waits until it has been silent for 10 s. Then ledger rows, skipping
-- locked ones: they are found the next time round. The lock checks state and time again.
-- Index: workflow_jobs_pkey, workflows_pkey; jobs_pkey, unique_keys_job,
-- unsuccessful_attempts_pkey, attempt_logs_pkey, expiries_pkey, retention_pkey. ends and
-- undelivered are read whole, but they are small. Of more than 100,000 ends no hash is made:
-- then all followed jobs stay.
with mine as materialized (
    select pg_try_advisory_xact_lock(4653017) as locked
), walk as materialized (
    select
        case when not $8::boolean and r.policies = $5::jsonb then r.job_id else '00000000-0000-0000-0000-000000000000' end as job_id,
        case when not $8::boolean and r.policies = $5::jsonb then r.began_at else now() end as began_at,
        case when r.policies = $5::jsonb then r.caught_up_at else now() end as caught_up_at
    from (select) once
    left join retention r on r.walk = 'ended'
    where (select locked from mine)
        and not coalesce(r.worker_id <> $9::text and r.worked_at > now() - interval '10 seconds', false)
), over as materialized (
    select array(select now() - t.keep from unnest($2::interval[]) with ordinality as t (keep, nth) order by nth) as succeeded,
        array(select now() - t.keep from unnest($3::interval[]) with ordinality as t (keep, nth) order by nth) as canceled,
        array(select now() - t.keep from unnest($4::interval[]) with ordinality as t (keep, nth) order by nth) as keys
), needed as materialized (
    select w.job_id
    from (select job_id from ends union all select job_id from undelivered where given_up_at is null) w
    limit 100000
), last as materialized (
    select j.job_id
    from jobs j
    where j.job_id > (select w.job_id from walk w) and j.job_id < $6::uuid
    order by j.job_id
    offset $7::integer - 1 limit 1
), old as materialized (
    select j.job_id,
        (case j.state when 'succeeded' then (select succeeded from over) else (select canceled from over) end
            )[coalesce(array_position($1::text[], j.job_type), 1)] - j.finished_at as late,
        j.idempotency_key is not null
                and not coalesce(j.finished_at <= ((select keys from over))[coalesce(array_position($1::text[], j.job_type), 1)], false)
            or (select u.job_id from unique_keys u where u.job_id = j.job_id and u.expires_at is not null and u.expires_at > now() limit 1) is not null
            as needed
    from jobs j
    where j.job_id > (select w.job_id from walk w) and j.job_id < $6::uuid
        and j.job_id <= coalesce((select l.job_id from last l), 'ffffffff-ffff-ffff-ffff-ffffffffffff')
        and j.state in ('succeeded', 'canceled')
        and j.finished_at <= (case j.state when 'succeeded' then (select succeeded from over) else (select canceled from over) end
            )[coalesce(array_position($1::text[], j.job_type), 1)]
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
), blanked as (
    update jobs j
    set payload = 'null', result = null, progress = null, checkpoint = null, last_error = null, tags = '{}',
        trace_parent = '', trace_state = '', callback_url = null, erased_at = now()
    from old o
    where o.needed and j.job_id = o.job_id
    returning j.state
), deleted as (
    delete from jobs j using old o
    where not o.needed and j.job_id = o.job_id
    returning j.state
), attempts as (
    delete from unsuccessful_attempts a using old o where a.job_id between o.job_id and o.job_id
), logs as (
    delete from attempt_logs l using old o where l.job_id between o.job_id and o.job_id
), expiring as (
    delete from expiries e using old o where e.job_id between o.job_id and o.job_id
), marked as (
    insert into retention as r (walk, policies, job_id, began_at, worker_id, worked_at, caught_up_at)
    select 'ended', $5::jsonb, coalesce((select l.job_id from last l), $6::uuid), w.began_at, $9::text, now(),
        case when (select l.job_id from last l) is null then now() else w.caught_up_at end
    from walk w
    on conflict (walk) do update
    set policies = excluded.policies, job_id = excluded.job_id, began_at = excluded.began_at,
        worker_id = excluded.worker_id, worked_at = excluded.worked_at, caught_up_at = excluded.caught_up_at
)
select w.job_id is not null as mine, (select l.job_id from last l) is null as reached,
    coalesce(now() - w.began_at, interval '0') as walked,
    case when (select l.job_id from last l) is null then interval '0' else coalesce(now() - w.caught_up_at, interval '0') end as behind,
    (select count(*) from deleted where state = 'succeeded') as deleted_succeeded,
    (select count(*) from deleted where state = 'canceled') as deleted_canceled,
    0::bigint as deleted_dead,
    (select count(*) from blanked where state = 'succeeded') as blanked_succeeded,
    (select count(*) from blanked where state = 'canceled') as blanked_canceled,
    0::bigint as blanked_dead,
    (select max(late) from old) as late
from (select) once
left join walk w on true;

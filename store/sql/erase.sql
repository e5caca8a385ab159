-- Blank ended jobs $1 on request: all that clients and handlers have put into them, and what
-- their attempts have said; and with them the deliveries of their ends, whose payloads have
-- their results. Jobs and deliveries that have not ended stay as they are. The hash of the
-- request goes too, because it would show a guessed payload right: whatever is sent with the
-- key of such a job is taken for the same request. An end that was not
-- announced yet is never announced: the callback URL goes. Ids that are no jobs are left out, and so is
-- a job that dies while this statement waits for it: a second one finds it. Unless
-- $2 is null, it is written down for each job that $2 did it, and why: $3.
-- Clock: now().
-- Locks: of each job, the dead letter, then the ledger row, as a requeue does.
-- Index: jobs_parent, dead_letters_dead_at, jobs_pkey, unsuccessful_attempts_pkey, attempt_logs_pkey.
with asked as (
    select i.job_id, i.nth, i.job_id as first from unnest($1::uuid[]) with ordinality i (job_id, nth)
    union all
    select c.job_id, i.nth, i.job_id
    from unnest($1::uuid[]) with ordinality i (job_id, nth)
    cross join lateral (
        select c.job_id, c.job_type from jobs c where c.parent_id = i.job_id order by c.parent_id, c.job_id offset 0
    ) c
    where c.job_type = 'WEBHOOK' and c.job_id <> all($1::uuid[])
), listed as (
    select i.job_id, d.finished_at as died_at
    from asked i
    left join lateral (
        select j.finished_at
        from jobs j
        join dead_letters d on d.dead_at between j.finished_at and j.finished_at and d.job_id between j.job_id and j.job_id
        where j.job_id = i.job_id
        for update of d
    ) d on true
    order by i.nth, i.job_id <> i.first, i.job_id
), ended as materialized (
    select j.job_id, j.tenant, j.state, j.finished_at
    from listed l
    cross join lateral (
        select j.job_id, j.tenant, j.state, j.finished_at from jobs j
        where j.job_id = l.job_id and j.state in ('succeeded', 'dead', 'canceled')
            and (j.state <> 'dead' or j.finished_at = l.died_at)
            and (j.erased_at is null or j.request_hash <> '')
        for update
    ) j
), blanked as (
    update jobs j
    set payload = 'null', result = null, progress = null, checkpoint = null, last_error = null, tags = '{}',
        trace_state = '', request_hash = '',
        callback_url = null, erased_at = now(), updated_at = now()
    from ended e
    where j.job_id = e.job_id
), forbidden as (
    update dead_letters d set erased = true, error_code = '', fingerprint = ''
    from ended e
    where d.dead_at between e.finished_at and e.finished_at and d.job_id between e.job_id and e.job_id
), attempts as (
    update unsuccessful_attempts a set error_code = null, error = null, stack = null
    from ended e
    where a.job_id between e.job_id and e.job_id
), logs as (
    delete from attempt_logs l using ended e where l.job_id between e.job_id and e.job_id
), audited as (
    insert into audit_log (actor, action, tenant, job_id, count, reason)
    select $2::text, 'job.erase', tenant, job_id, 1, $3::text from ended where $2::text is not null
)
select state::text as state from ended;

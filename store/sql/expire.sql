-- Cancel jobs that have not started by their time: created | queued -> canceled. Takes up
-- to $1 entries from the list. An entry leaves it with its job, or if the job has started:
-- then the ledger has no such time any more, or the job has a lease. The statement that
-- releases a job whose handler was not started adds its entry again.
-- A job whose row in another list is locked is left for the next time: it is being
-- claimed, admitted or moved.
-- Clock: now().
-- Locks: entries, earliest first; then rows of ready, timers and parked, and leases for
-- key share; all of them skipping locked ones; then ledger rows.
-- Index: expiries_expires_at, expiries_pkey, jobs_pkey, ready_pkey, ready_turn, timers_pkey,
-- parked_pkey, leases_pkey.
with due as materialized (
    select job_id
    from expiries
    where expires_at <= now()
    order by expires_at
    limit $1 for update skip locked
), waiting as materialized (
    select ledger.*
    from due d
    cross join lateral (
        select j.job_id, j.job_type, j.priority, j.run_at, j.gates
        from jobs j
        where j.job_id = d.job_id and j.state in ('created', 'queued') and j.expires_at is not null
        offset 0
    ) ledger
), in_ready as materialized (
    select row.at
    from waiting w
    cross join lateral (
        select r.ctid as at
        from ready r
        where r.job_type = w.job_type and r.urgency = -w.priority and r.run_at = w.run_at and r.job_id = w.job_id
        for update skip locked
    ) row
    union all
    select row.at
    from waiting w
    cross join lateral (
        select r.ctid as at from ready r where r.turn and r.job_id = w.job_id
        for update skip locked
    ) row
    where w.gates is not null
), in_timers as materialized (
    select row.at
    from waiting w
    cross join lateral (
        select t.ctid as at from timers t where t.job_id = w.job_id
        for update skip locked
    ) row
), in_parked as materialized (
    select row.at
    from waiting w
    cross join lateral (
        select p.ctid as at from parked p where p.job_id = w.job_id
        for update skip locked
    ) row
    where w.gates is not null
), leased as materialized (
    select row.job_id
    from waiting w
    cross join lateral (
        select l.job_id from leases l where l.job_id = w.job_id
        for key share skip locked
    ) row
), unqueued as (
    delete from ready r where r.ctid = any (array(select at from in_ready))
    returning r.job_id
), unscheduled as (
    delete from timers t where t.ctid = any (array(select at from in_timers))
    returning t.job_id
), unparked as (
    delete from parked p where p.ctid = any (array(select at from in_parked))
    returning p.job_id
), canceled as (
    update jobs j
    set state = 'canceled', finished_at = now(), updated_at = now(),
        last_error = 'expired at ' || to_char(j.expires_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
            || ': it had not started'
    from (
        select job_id, true as ready from unqueued
        union all
        select job_id, false from unscheduled
        union all
        select job_id, false from unparked
    ) freed
    where j.job_id = freed.job_id
    returning j.job_id, j.job_type, j.tenant, j.attempt, j.trace_parent, j.trace_state, j.last_error,
        case when freed.ready then j.gates end as gates, j.followed
), told as (
    insert into ends (job_id, state, at)
    select job_id, 'canceled', now() from canceled where followed
), tallied as (
    insert into tallies (slot, job_type, worker_id, event, attempt, jobs, seconds)
    select date_bin('10 seconds', now(), 'epoch'), job_type, '', 'withdrawn', attempt, count(*), 0
    from canceled
    group by job_type, attempt
), woken as (
    insert into wakes (gates, freed)
    select array_agg(gate), true
    from canceled
    cross join unnest(gates) gate
    where gates is not null
    having count(*) > 0
), done as (
    select job_id from canceled
    union all
    select job_id from leased
    union all
    (select job_id from due except all select job_id from waiting)
), removed as (
    delete from expiries e using done d where e.job_id between d.job_id and d.job_id
    returning e.job_id
)
select r.job_id as id, c.job_id is not null as canceled, coalesce(c.job_type, '') as type, coalesce(c.tenant, '') as tenant,
    coalesce(c.trace_parent, '') as trace_parent, coalesce(c.trace_state, '') as trace_state,
    coalesce(c.last_error, '') as reason, coalesce(c.gates is not null, false) as freed
from removed r
left join canceled c on c.job_id = r.job_id;

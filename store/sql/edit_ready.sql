-- Change those of the jobs $1 that are ready: their priority $2, their due time ($3, or $4
-- from now), and their tags $5. Nulls stay as they are. Only jobs in one of the states $6,
-- with the tag $7, and of a priority below $8, unless these are null.
-- A due time of infinity holds jobs, but none that waits for another attempt.
-- A job that is due later is postponed: queued -> created, or -> retry if it has used an
-- attempt. A job with gates keeps its slots and its place unless its due time changes, or
-- its turn, which was one of its old priority: then it gives its slots back, and starts at
-- its first gate again. It has not started, so a rate does not count it.
-- A job that is not in the list any more, since it was claimed, is left alone.
-- Clock: now().
-- Locks: ready rows, then ledger rows, then rows of `admitted`.
-- Index: jobs_pkey, ready_pkey, ready_turn, admitted_pkey.
with chosen as materialized (
    select job_id, job_type, priority, run_at
    from jobs
    where job_id = any ($1::uuid[]) and state = 'queued'
        and ($6::text[] is null or 'queued' = any ($6)) and ($7::text is null or $7 = any (tags))
        and ($8::smallint is null or priority < $8)
        and ($3::timestamptz is distinct from 'infinity' or attempt = 0)
    order by job_id
), untimed as (
    delete from ready r using chosen c
    where r.job_type = c.job_type and r.urgency = -c.priority and r.run_at = c.run_at and r.job_id = c.job_id
        and r.turn is null
    returning r.job_id, r.urgency, r.run_at, r.turn, r.admitted_at
), turned as (
    delete from ready r using chosen c
    where r.job_id = c.job_id and r.turn
    returning r.job_id, r.urgency, r.run_at, r.turn, r.admitted_at
), edited as (
    update jobs j
    set priority = coalesce($2::smallint, j.priority), tags = coalesce($5::text[], j.tags),
        run_at = coalesce($3::timestamptz, now() + $4::interval, j.run_at),
        state = case
            when coalesce($3, now() + $4) > now() then case when j.attempt = 0 then 'created' else 'retry' end::job_state
            else j.state
        end,
        updated_at = now()
    from (select * from untimed union all select * from turned) f
    where j.job_id = f.job_id
    returning j.job_id, j.job_type, j.tenant, j.state, j.priority, j.run_at, j.attempt, j.gates, j.terms, j.trace_parent, j.trace_state,
        f.turn, f.admitted_at, case when coalesce($3, now() + $4) is null then f.run_at else j.run_at end as position,
        j.state = 'queued' and (j.gates is null
            or coalesce($3, now() + $4) is null and (f.turn is null or f.urgency = -j.priority)) as stays
), scheduled as (
    insert into timers (job_id, run_at, job_type, state, attempt)
    select job_id, run_at, job_type, state, attempt from edited where state <> 'queued'
), listed as (
    insert into ready (job_id, job_type, urgency, run_at, attempt, turn, admitted_at)
    select job_id, job_type, -priority, position, attempt, turn, admitted_at from edited where stays
), arrived as (
    insert into parked (job_id, lane, urgency, position, job_type, tenant, gates, attempt, capacity, on_conflict)
    select job_id, gates[1], -priority, run_at, job_type, tenant, gates, attempt,
        (terms ->> 'concurrencyLimit')::integer, terms ->> 'onConflict'
    from edited
    where state = 'queued' and not stays
    returning lane
), woken as (
    insert into wakes (gates, freed)
    select array_agg(gate), true from edited, unnest(gates) gate where not stays having count(*) > 0
    union all
    select array_agg(distinct lane), false from arrived having count(*) > 0
), withdrawn as (
    delete from admitted a
    using (select job_id, unnest(gates) as gate from edited where not stays) e
    where a.gate = e.gate and a.job_id = e.job_id
), moved as (
    update admitted a
    set urgency = -e.priority
    from (select job_id, priority, unnest(gates) as gate from edited where stays) e
    where a.gate = e.gate and a.job_id = e.job_id and a.urgency <> -e.priority
)
select job_id as id, job_type as type, tenant, state::text as state, trace_parent, trace_state, gates is not null as gated
from edited;

-- Change those of the jobs $1 that wait at a gate; see edit_ready.sql for the parameters.
-- A job that is due later is postponed: queued -> created, or -> retry if it has used an
-- attempt. Any other stays in its lane, with its new order, unless it has a turn: a turn is
-- one of its priority and its due time, so it starts at its first gate again.
-- Clock: now().
-- Locks: parked rows in the order of heads.sql: lane, urgency, position, job; then ledger rows.
-- Index: jobs_pkey, parked_pkey.
with chosen as materialized (
    select job_id
    from jobs
    where job_id = any ($1::uuid[]) and state = 'queued'
        and ($6::text[] is null or 'queued' = any ($6)) and ($7::text is null or $7 = any (tags))
        and ($8::smallint is null or priority < $8)
        and ($3::timestamptz is distinct from 'infinity' or attempt = 0)
), waiting as materialized (
    select p.job_id
    from chosen c
    join parked p on p.job_id = c.job_id
    order by p.lane collate "C", p.urgency, p.position, p.job_id for update of p
), freed as (
    delete from parked p using waiting w
    where p.job_id = w.job_id
    returning p.*
), edited as (
    update jobs j
    set priority = coalesce($2::smallint, j.priority), tags = coalesce($5::text[], j.tags),
        run_at = coalesce($3::timestamptz, now() + $4::interval, j.run_at),
        state = case
            when coalesce($3, now() + $4) > now() then case when j.attempt = 0 then 'created' else 'retry' end::job_state
            else j.state
        end,
        updated_at = now()
    from freed f
    where j.job_id = f.job_id
    returning j.job_id, j.job_type, j.tenant, j.state, j.priority, j.run_at, j.attempt, f.gates, j.trace_parent, j.trace_state,
        f.lane, f.position, f.turn, f.capacity, f.on_conflict, f.parked_at,
        f.turn is null or f.urgency = -j.priority and coalesce($3, now() + $4) is null as stays
), scheduled as (
    insert into timers (job_id, run_at, job_type, state, attempt)
    select job_id, run_at, job_type, state, attempt from edited where state <> 'queued'
), parked_again as (
    insert into parked (
        job_id, lane, urgency, position, turn, job_type, tenant, gates, attempt, capacity, on_conflict, parked_at
    )
    select job_id, case when stays then lane else gates[1] end, -priority,
        case when stays and turn then position else run_at end, case when stays then turn end,
        job_type, tenant, gates, attempt, capacity, on_conflict, parked_at
    from edited
    where state = 'queued'
    returning lane
), woken as (
    insert into wakes (gates, freed)
    select array_agg(distinct lane), false from parked_again having count(*) > 0
)
select job_id as id, job_type as type, tenant, state::text as state, trace_parent, trace_state, true as gated
from edited;

-- Change those of the jobs $1 that are scheduled, held, or wait for their next attempt; see
-- edit_ready.sql for the parameters. A job that is due now is queued: created | retry ->
-- queued. A held job stays held unless it gets a due time. One that waits for others of its
-- workflow gets none, nor does one that has not started and whose workflow is held: they are
-- left alone. Jobs that stay keep their timer rows: the follower, if
-- it waits for one of them, would not find a new one.
-- Clock: now().
-- Locks: workflows of jobs that get a due time, then timer rows in the order of the jobs, then ledger rows.
-- Index: jobs_pkey, timers_pkey, workflow_jobs_pkey, workflows_pkey.
with barred as materialized (
    select w.workflow_id, w.held
    from workflows w
    where w.workflow_id = any (array(select wj.workflow_id from workflow_jobs wj where wj.job_id = any ($1::uuid[])))
        and coalesce($3, now() + $4) < 'infinity'
    order by w.workflow_id for share
), chosen as materialized (
    select job_id
    from jobs
    where job_id = any ($1::uuid[]) and state in ('created', 'retry')
        and ($6::text[] is null or state::text = any ($6)) and ($7::text is null or $7 = any (tags))
        and ($8::smallint is null or priority < $8)
        and (followed is null or coalesce($3, now() + $4) is null or not exists (
            select from workflow_jobs w where w.job_id = jobs.job_id and w.missing > 0
        ) and (state <> 'created' or not exists (
            select from workflow_jobs w where w.job_id = jobs.job_id and w.workflow_id in (select workflow_id from barred where held)
        )))
), waiting as materialized (
    select t.job_id
    from chosen c
    join timers t on t.job_id = c.job_id
    order by t.job_id for update of t
), moved as (
    update timers t
    set run_at = coalesce($3, now() + $4)
    from waiting w
    where t.job_id = w.job_id and coalesce($3, now() + $4) > now()
), freed as (
    delete from timers t using waiting w
    where t.job_id = w.job_id and coalesce($3, now() + $4) <= now()
), edited as (
    update jobs j
    set priority = coalesce($2::smallint, j.priority), tags = coalesce($5::text[], j.tags),
        run_at = coalesce($3::timestamptz, now() + $4::interval, j.run_at),
        state = case when coalesce($3, now() + $4) <= now() then 'queued' else j.state end,
        updated_at = now()
    from waiting w
    where j.job_id = w.job_id
    returning j.job_id, j.job_type, j.tenant, j.state, j.priority, j.run_at, j.attempt, j.gates, j.terms, j.trace_parent, j.trace_state
), listed as (
    insert into ready (job_id, job_type, urgency, run_at, attempt)
    select job_id, job_type, -priority, run_at, attempt from edited where state = 'queued' and gates is null
), arrived as (
    insert into parked (job_id, lane, urgency, position, job_type, tenant, gates, attempt, capacity, on_conflict)
    select job_id, gates[1], -priority, run_at, job_type, tenant, gates, attempt,
        (terms ->> 'concurrencyLimit')::integer, terms ->> 'onConflict'
    from edited
    where state = 'queued' and gates is not null
    returning lane
), woken as (
    insert into wakes (gates, freed)
    select array_agg(distinct lane), false from arrived having count(*) > 0
)
select job_id as id, job_type as type, tenant, state::text as state, trace_parent, trace_state, gates is not null as gated
from edited;

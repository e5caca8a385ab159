-- Return jobs to the queue without charging them an attempt: running -> queued, at
-- their old position. A job with gates passes them again. A job whose cancel was
-- requested is left alone: the caller must cancel it. A job whose handler was not started
-- still expires.
-- Clock: now().
-- Locks: lease rows in the order sent (the caller sorts by job), then ledger rows.
-- Fence: lease_id.
-- Index: leases_pkey, jobs_pkey, expiries_pkey.
with batch as (
    select *
    from unnest(
        $1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
        $8::text[], $9::text[], $10::integer[], $11::integer[], $12::integer[], $13::integer[],
        $14::integer[], $15::integer[], $16::boolean[]
    ) as b (
        job_id, lease_id, plugin, plugin_version, span_id, outcome, error_code,
        error, stack, number, charged, interruptions, crashes,
        began_ms, done_ms, started
    )
), freed as (
    delete from leases l using batch b
    where l.job_id between b.job_id and b.job_id and l.lease_id = b.lease_id and not l.cancel_requested
    returning b.*, l.fence, l.worker_id, l.claimed_at, coalesce(b.began_ms, l.began_ms) as began
), settled as (
    update jobs j
    set attempt = f.charged, interruptions = f.interruptions, crashes = f.crashes,
        fence = f.fence, worker_id = f.worker_id, started_at = f.claimed_at,
        last_error = coalesce(f.error, j.last_error), updated_at = now(),
        expires_at = case when f.started then null else j.expires_at end
    from freed f
    where j.job_id = f.job_id
    returning f.*, j.job_type, j.priority, j.run_at, j.tenant, j.gates, j.terms, j.expires_at
), queued as (
    insert into ready (job_id, job_type, urgency, run_at, attempt)
    select job_id, job_type, -priority, run_at, charged from settled where gates is null
), gated as (
    insert into parked (job_id, lane, urgency, position, job_type, tenant, gates, attempt, capacity, on_conflict)
    select job_id, gates[1], -priority, run_at, job_type, tenant, gates, charged,
        (terms ->> 'concurrencyLimit')::integer, terms ->> 'onConflict'
    from settled
    where gates is not null
), woken as (
    insert into wakes (gates, freed)
    select array_agg(gate), true
    from settled
    cross join unnest(gates) gate
    where gates is not null
    having count(*) > 0
    union all
    select array_agg(distinct gates[1]), false from settled where gates is not null having count(*) > 0
), expiring as (
    insert into expiries (job_id, expires_at)
    select job_id, expires_at from settled where expires_at is not null
    on conflict (job_id) do nothing
)
insert into unsuccessful_attempts (
    job_id, fence, attempt, lease_id, worker_id, plugin, plugin_version, claimed_at, ended_at,
    outcome, error_code, error, stack, span_id, due_at, began_ms, done_ms
)
select job_id, fence, number, lease_id, worker_id, plugin, plugin_version, claimed_at, now(),
    outcome::attempt_outcome, error_code, error, stack, span_id, run_at, began, done_ms
from settled
returning lease_id;

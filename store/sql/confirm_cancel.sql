-- Settle attempts as canceled: running -> canceled.
-- Clock: now().
-- Locks: lease rows in the order sent (the caller sorts by job), then ledger rows.
-- Fence: lease_id.
-- Index: leases_pkey, jobs_pkey.
with batch as (
    select *
    from unnest(
        $1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
        $8::text[], $9::text[], $10::integer[], $11::integer[], $12::integer[], $13::integer[],
        $14::integer[], $15::integer[]
    ) as b (
        job_id, lease_id, plugin, plugin_version, span_id, outcome, error_code,
        error, stack, number, charged, interruptions, crashes,
        began_ms, done_ms
    )
), freed as (
    delete from leases l using batch b
    where l.job_id between b.job_id and b.job_id and l.lease_id = b.lease_id
    returning b.*, l.fence, l.worker_id, l.claimed_at, coalesce(b.began_ms, l.began_ms) as began
), settled as (
    update jobs j
    set state = 'canceled', finished_at = now(), attempt = f.charged, interruptions = f.interruptions, crashes = f.crashes,
        fence = f.fence, worker_id = f.worker_id, started_at = f.claimed_at,
        last_error = coalesce(f.error, j.last_error), updated_at = now()
    from freed f
    where j.job_id = f.job_id
    returning f.*, j.run_at, j.job_type, j.gates, j.followed
), woken as (
    insert into wakes (gates, freed)
    select array_agg(gate), true
    from settled
    cross join unnest(gates) gate
    where gates is not null
    having count(*) > 0
), told as (
    insert into ends (job_id, state, at)
    select job_id, 'canceled', now() from settled where followed
), tallied as (
    insert into tallies (slot, job_type, worker_id, event, attempt, jobs, seconds)
    select date_bin('10 seconds', now(), 'epoch'), job_type, worker_id, 'canceled', charged, count(*), 0
    from settled
    group by job_type, worker_id, charged
)
insert into unsuccessful_attempts (
    job_id, fence, attempt, lease_id, worker_id, plugin, plugin_version, claimed_at, ended_at,
    outcome, error_code, error, stack, span_id, due_at, began_ms, done_ms
)
select job_id, fence, number, lease_id, worker_id, plugin, plugin_version, claimed_at, now(),
    outcome::attempt_outcome, error_code, error, stack, span_id, run_at, began, done_ms
from settled
returning lease_id;

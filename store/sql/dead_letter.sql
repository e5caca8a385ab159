-- Dead-letter jobs: running -> dead. A job whose cancel was requested is left alone: the
-- caller must cancel it.
-- Clock: now().
-- Locks: lease rows in the order sent (the caller sorts by job), then ledger rows.
-- Fence: lease_id.
-- Index: leases_pkey, jobs_pkey.
with batch as (
    select *
    from unnest(
        $1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
        $8::text[], $9::text[], $10::integer[], $11::integer[], $12::integer[], $13::integer[],
        $14::integer[], $15::integer[], $16::text[]
    ) as b (
        job_id, lease_id, plugin, plugin_version, span_id, outcome, error_code,
        error, stack, number, charged, interruptions, crashes,
        began_ms, done_ms, fingerprint
    )
), freed as (
    delete from leases l using batch b
    where l.job_id between b.job_id and b.job_id and l.lease_id = b.lease_id and not l.cancel_requested
    returning b.*, l.fence, l.worker_id, l.claimed_at, coalesce(b.began_ms, l.began_ms) as began
), settled as (
    update jobs j
    set state = 'dead', finished_at = now(), attempt = f.charged, interruptions = f.interruptions, crashes = f.crashes,
        fence = f.fence, worker_id = f.worker_id, started_at = f.claimed_at,
        last_error = coalesce(f.error, j.last_error), updated_at = now()
    from freed f
    where j.job_id = f.job_id
    returning f.*, j.run_at, j.job_type, j.tenant, j.gates, j.followed
), buried as (
    insert into dead_letters (job_id, dead_at, job_type, tenant, error_code, fingerprint, plugin_version)
    select job_id, now(), job_type, tenant, coalesce(error_code, ''), fingerprint, coalesce(plugin_version, '') from settled
), woken as (
    insert into wakes (gates, freed)
    select array_agg(gate), true
    from settled
    cross join unnest(gates) gate
    where gates is not null
    having count(*) > 0
), told as (
    insert into ends (job_id, state, at)
    select job_id, 'dead', now() from settled where followed
), tallied as (
    insert into tallies (slot, job_type, worker_id, event, attempt, jobs, seconds)
    select date_bin('10 seconds', now(), 'epoch'), job_type, worker_id, 'dead', charged, count(*), 0
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

-- When jobs were due and their handlers began, attempt by attempt; and how long jobs waited
-- and ran of late.
--
-- Earlier orchestrators go on as before, and leave all of it empty. Every column is null for
-- what was there before.

-- +goose Up
-- Milliseconds from the claim (claimed_at, or started_at) until the handler began; null if it
-- did not, or if nobody knows.
alter table jobs add column began_ms integer;
-- Noted when the lease is renewed, so that it is known if the worker is lost.
alter table leases add column began_ms integer;
alter table unsuccessful_attempts
    -- When the job was due for this attempt.
    add column due_at timestamptz,
    add column began_ms integer,
    -- Likewise, until the handler was done or its process gone, or the worker's last sign of
    -- life if it was lost. From then to the end, the lease was only held.
    add column done_ms integer;

create or replace view job_attempts as
select job_id, fence, attempt, lease_id, worker_id, plugin, plugin_version, claimed_at, ended_at,
    outcome, error_code, error, stack, span_id,
    due_at,
    case when began_ms is not null then least(claimed_at + began_ms * interval '1 ms', ended_at) end as began_at,
    case when done_ms is not null then least(claimed_at + done_ms * interval '1 ms', ended_at) end as done_at
from unsuccessful_attempts
union all
select job_id, fence, attempt, lease_id, worker_id, plugin, plugin_version, started_at, finished_at,
    'succeeded'::attempt_outcome, null, null, null, span_id,
    run_at,
    case when began_ms is not null then least(started_at + began_ms * interval '1 ms', finished_at) end,
    null
from jobs
where lease_id is not null;

-- How long jobs waited until they were claimed, and how long their handlers ran: slots as
-- those of the tallies. Each orchestrator adds what it has seen once a slot.
create table latency_slots (
    slot     timestamptz,
    -- Empty for all types together.
    job_type text,
    -- How many were in each bucket; those at the end are left out if they are empty.
    waits    bigint[] not null,
    runs     bigint[] not null,
    primary key (slot, job_type)
) with (fillfactor = 75);

-- +goose Down
drop table latency_slots;
drop view job_attempts;
alter table jobs drop column began_ms;
alter table leases drop column began_ms;
alter table unsuccessful_attempts drop column due_at, drop column began_ms, drop column done_ms;
create view job_attempts as
select job_id, fence, attempt, lease_id, worker_id, plugin, plugin_version, claimed_at, ended_at,
    outcome, error_code, error, stack, span_id
from unsuccessful_attempts
union all
select job_id, fence, attempt, lease_id, worker_id, plugin, plugin_version, started_at, finished_at,
    'succeeded'::attempt_outcome, null, null, null, span_id
from jobs
where lease_id is not null;

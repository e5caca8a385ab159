-- Jobs that may have caused the death of a process. They run isolated until they are
-- cleared.

-- +goose Up
alter type attempt_outcome add value 'suspected' after 'crashed';

-- How many processes have died under the job since an attempt at it last ended in another
-- way. If any, its next attempt has a process to itself.
alter table jobs add column crashes smallint not null default 0;
-- Not valid: no row can have less than the default yet, and checking them all would block
-- the ledger.
alter table jobs add constraint jobs_crashes_check check (crashes >= 0) not valid;

create or replace view current_jobs as
select j.job_id, j.tenant, j.job_type, j.priority, j.idempotency_key, j.request_hash, j.payload, j.tags,
    j.trace_parent, j.trace_state, j.max_attempts, j.timeout, j.created_at,
    case when l.job_id is null then j.state else 'running' end as state,
    j.run_at,
    case when l.job_id is null then j.attempt else j.attempt + 1 end as attempt,
    j.interruptions,
    coalesce(l.fence, j.fence) as fence,
    coalesce(l.worker_id, j.worker_id) as worker_id,
    coalesce(l.claimed_at, j.started_at) as started_at,
    j.finished_at,
    greatest(j.updated_at, l.claimed_at) as updated_at,
    j.last_error, j.progress, j.checkpoint, j.result, j.crashes
from jobs j
left join leases l on l.job_id between j.job_id and j.job_id;

-- +goose Down
drop view job_attempts, current_jobs;
alter table jobs drop column crashes;

alter type attempt_outcome rename to attempt_outcome_with_suspects;
create type attempt_outcome as enum (
    'succeeded', 'failed', 'permanent', 'timeout', 'crashed',
    'lease_expired', 'interrupted', 'given_back', 'snoozed', 'canceled'
);
-- A suspected attempt was not charged, and neither was an interrupted one.
alter table unsuccessful_attempts alter column outcome type attempt_outcome
    using (case outcome when 'suspected' then 'interrupted' else outcome::text end)::attempt_outcome;
drop type attempt_outcome_with_suspects;
create view current_jobs as
select j.job_id, j.tenant, j.job_type, j.priority, j.idempotency_key, j.request_hash, j.payload, j.tags,
    j.trace_parent, j.trace_state, j.max_attempts, j.timeout, j.created_at,
    case when l.job_id is null then j.state else 'running' end as state,
    j.run_at,
    case when l.job_id is null then j.attempt else j.attempt + 1 end as attempt,
    j.interruptions,
    coalesce(l.fence, j.fence) as fence,
    coalesce(l.worker_id, j.worker_id) as worker_id,
    coalesce(l.claimed_at, j.started_at) as started_at,
    j.finished_at,
    greatest(j.updated_at, l.claimed_at) as updated_at,
    j.last_error, j.progress, j.checkpoint, j.result
from jobs j
-- Not "=": see TestPlansOfTheHotStatementsAfterAQuietNight.
left join leases l on l.job_id between j.job_id and j.job_id;
create view job_attempts as
select job_id, fence, attempt, lease_id, worker_id, plugin, plugin_version, claimed_at, ended_at,
    outcome, error_code, error, stack, span_id
from unsuccessful_attempts
union all
select job_id, fence, attempt, lease_id, worker_id, plugin, plugin_version, started_at, finished_at,
    'succeeded'::attempt_outcome, null, null, null, span_id
from jobs
where lease_id is not null;

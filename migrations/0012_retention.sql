-- Ended jobs that are deleted when their time is over, or blanked: nothing is left but the
-- record that there was such a job. And what people did, and why.
--
-- Earlier orchestrators go on as before: they delete nothing, and show a blanked job as one
-- with the payload null. They can requeue a blanked dead job, so stop them before you
-- erase any.

-- +goose Up
-- When the job was blanked; null, which takes no space, for all others.
alter table jobs add column erased_at timestamptz;
-- True for blanked jobs: they cannot be requeued. Null for all others.
alter table dead_letters add column erased boolean;

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
    j.last_error, j.progress, j.checkpoint, j.result, j.crashes, j.gates, j.terms, j.expires_at,
    j.erased_at
from jobs j
left join leases l on l.job_id between j.job_id and j.job_id;

-- The deleter looks for jobs that something unique still needs. Only for keys with a time:
-- all others are free once the job has ended.
create index unique_keys_job on unique_keys (job_id) where expires_at is not null;

-- How far the deleter is: a row for each walk, 'ended' through the ledger, 'dead' through
-- the dead letters. If a row is lost, the walk starts again.
create table retention (
    walk         text primary key check (walk in ('ended', 'dead')),
    -- What it deletes by: times for each job type, '' for all others. If others hold, it
    -- starts again.
    policies     jsonb not null,
    -- The last job that it has looked at: by id, which is the order of creation, or by the
    -- time of death and id. And when it was at the first.
    at           timestamptz not null default '-infinity',
    job_id       uuid not null,
    began_at     timestamptz not null,
    -- Who looked last, and when; and when somebody had last looked at all that are old enough.
    worker_id    text not null,
    worked_at    timestamptz not null,
    caught_up_at timestamptz not null
) with (fillfactor = 50);

-- Requests to blank all ended jobs of a tenant. Any orchestrator takes on one that is not
-- finished.
create table erasures (
    erasure_id  uuid primary key,
    tenant      text not null,
    reason      text not null,
    asked_by    text not null,
    asked_at    timestamptz not null default now(),
    -- The last job of the tenant that was looked at.
    job_id      uuid not null default '00000000-0000-0000-0000-000000000000',
    -- How many jobs it has blanked, and how many it has left because they had not ended.
    erased      bigint not null default 0,
    left_open   bigint not null default 0,
    updated_at  timestamptz not null default now(),
    finished_at timestamptz
) with (fillfactor = 50);
create index erasures_unfinished on erasures (asked_at, erasure_id) where finished_at is null;

-- What people did to the data, written by the statement that did it.
create table audit_log (
    audit_id bigint generated always as identity primary key,
    at       timestamptz not null default now(),
    -- The user who logged in, or a token by its name; empty if the API asks for none.
    actor    text not null,
    action   text not null,
    tenant   text,
    job_id   uuid,
    -- What it concerned, if that is not one job.
    filter   jsonb,
    -- How many jobs.
    count    bigint,
    reason   text not null default '',
    -- What came of it, if the action can end in more than one way.
    result   text not null default ''
);
create index audit_log_at on audit_log (at, audit_id);

-- +goose Down
drop table audit_log, erasures, retention;
drop index unique_keys_job;
drop view current_jobs;
alter table dead_letters drop column erased;
alter table jobs drop column erased_at;
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
    j.last_error, j.progress, j.checkpoint, j.result, j.crashes, j.gates, j.terms, j.expires_at
from jobs j
left join leases l on l.job_id between j.job_id and j.job_id;

-- Workflows: jobs that wait for others. A job that comes after others is stored as a held one,
-- `created` without a due time, and counts how many of those before it have not ended. The
-- follower counts down, and makes it due at zero; from then on it is a job like any other.
--
-- Nothing changes for jobs that belong to no workflow. An orchestrator that is older than this
-- migration runs jobs of workflows, but does not say when they have ended: the follower looks
-- for such jobs when it starts and every hour.

-- +goose Up
create table workflows (
    workflow_id     uuid primary key,
    tenant          text not null,
    name            text,
    idempotency_key text,
    request_hash    bytea not null,
    created_at      timestamptz not null default now(),
    -- How many jobs it has, without the last one, and how many of these have not ended.
    jobs            integer not null,
    remaining       integer not null,
    -- How many jobs have ended without success, the last one included.
    unsuccessful    integer not null default 0,
    -- How often a job of it has died. Zero spares readers the search for dead jobs.
    deaths          integer not null default 0,
    -- The job that runs when all others have ended, and whether it has ended; true without one.
    on_complete     uuid,
    completed       boolean not null,
    held            boolean not null default false,
    -- When somebody canceled the whole.
    canceled_at     timestamptz,
    finished_at     timestamptz,
    check (remaining between 0 and jobs),
    check (completed or on_complete is not null),
    check (finished_at is null or remaining = 0 and completed)
) with (fillfactor = 70);
-- A submission that is sent again finds its workflow, by its key or else by its id. The prefix
-- keeps a key from being taken for an id.
create unique index workflows_key on workflows (tenant, coalesce('key:' || idempotency_key, workflow_id::text));
create index workflows_tenant on workflows (tenant, workflow_id);
create index workflows_unfinished on workflows (workflow_id) where finished_at is null;

create table workflow_jobs (
    job_id      uuid primary key,
    workflow_id uuid not null,
    -- The place in the submission, from 0. The last one, for onComplete, comes after all others.
    position    integer not null,
    name        text,
    on_death    text not null check (on_death in ('wait', 'skip', 'cancel')),
    -- How many of those before it have not ended. For the last job: 1 until all others have.
    -- Only the follower changes it.
    missing     integer not null check (missing >= 0),
    -- When it shall become due once nothing is missing: not before run_at, and so long after
    -- that. Infinity for a job that somebody holds.
    run_at      timestamptz,
    delay       interval,
    -- The follower cancels it because one before it died, and those after it shall go on.
    skipped     boolean not null default false,
    -- How it has ended, once the follower has told those after it. A dead job has not ended
    -- unless its workflow is canceled.
    ended       job_state
) with (fillfactor = 70);
create index workflow_jobs_position on workflow_jobs (workflow_id, position);

-- after_id comes before job_id. position is the place among those before job_id.
create table workflow_edges (
    after_id uuid not null,
    job_id   uuid not null,
    position integer not null,
    primary key (after_id, job_id)
);
create index workflow_edges_job on workflow_edges (job_id, position);

-- +goose Down
drop table workflow_edges;
drop table workflow_jobs;
drop table workflows;

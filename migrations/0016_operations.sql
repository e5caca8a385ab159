-- Operations: one row for each action on all jobs that match a filter.
--
-- An orchestrator that works on a portion holds the row's lock, and writes how far the
-- operation is in the transaction that changes the jobs. So each job is done once, whoever
-- goes on after a crash.

-- +goose Up
create table if not exists operations (
    operation_id uuid primary key,
    action text not null check (action in ('requeue', 'cancel', 'hold', 'release', 'edit')),
    filter jsonb not null,
    -- Jobs that were created, or died, later do not match.
    frozen_at timestamptz not null,
    -- That of the filter; empty for all.
    tenant text not null,
    priority smallint check ((priority is not null) = (action = 'edit')),
    -- Jobs a second.
    rate integer not null check (rate >= 1),
    reason text not null,
    started_by text not null,
    -- The request that started it, and what it was: sent again, it starts nothing.
    idempotency_key text,
    request_hash bytea,
    stopped_by text not null default '',
    state text not null default 'running' check (state in ('running', 'stopped', 'finished', 'failed')),
    -- How many jobs matched at the start.
    expected bigint not null,
    expected_more boolean not null,
    -- Older jobs come next; null at the start.
    job_id uuid,
    found bigint not null default 0,
    done bigint not null default 0,
    -- How many were left as they are, by the reason.
    skipped jsonb not null default '{}',
    failures integer not null default 0,
    last_error text not null default '',
    -- When the rate allows the next portion.
    due_at timestamptz not null default now(),
    started_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    finished_at timestamptz,
    check ((finished_at is null) = (state = 'running'))
) with (fillfactor = 50);
create index if not exists operations_unfinished on operations (operation_id) where finished_at is null;
create unique index if not exists operations_key on operations (started_by, idempotency_key)
    where idempotency_key is not null;

-- +goose Down
drop table operations;

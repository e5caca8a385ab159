-- The ledger of all jobs, and beside it a narrow to-do list for each loop.
--
-- `jobs` is the truth about every job's state. The lists say what to do next, so
-- that no loop ever scans the ledger:
--
--   list          holds jobs in state   read by
--   ready         queued                claimer
--   leases        running               heartbeat, settler, reaper
--   timers        created, retry        scheduler
--   dead_letters  dead                  operators
--
-- A transition is one statement that changes the ledger row and moves the list row.
-- It always locks the list row first, then the ledger row.
--
-- No index contains a ledger column that changes, not even in its predicate, so
-- ledger updates stay HOT (heap-only) and write no index.

-- +goose Up
create type job_state as enum (
    'created', 'queued', 'running', 'retry', 'succeeded', 'dead', 'canceled'
);

create type attempt_outcome as enum (
    'succeeded', 'failed', 'permanent', 'timeout', 'crashed',
    'lease_expired', 'interrupted', 'given_back', 'snoozed', 'canceled'
);

create table jobs (
    job_id          uuid primary key,
    tenant          text not null,
    job_type        text not null,
    -- The lowest smallint is excluded because it cannot be negated.
    priority        smallint not null check (priority > -32768),
    idempotency_key text,
    -- SHA-256 over job type and payload: the same key must mean the same job.
    request_hash    bytea not null,
    -- json, not jsonb: it keeps the text as it is, and accepts \u0000 or a lone
    -- surrogate in a string.
    payload         json not null,
    tags            text[] not null,
    trace_parent    text not null,
    trace_state     text not null,
    max_attempts    integer not null check (max_attempts >= 1),
    timeout         interval not null check (timeout > interval '0'),
    created_at      timestamptz not null default now(),

    state           job_state not null,
    -- When the job is or was due; the order of the ready list.
    run_at          timestamptz not null,
    -- Attempts charged so far, the running one included.
    attempt         integer not null default 0 check (attempt >= 0),
    -- How often the job lost its owner without being charged.
    interruptions   integer not null default 0 check (interruptions >= 0),
    -- Grows with every claim, never falls, and survives a requeue.
    fence           bigint not null default 0,
    -- The last owner, and when its attempt began.
    worker_id       text,
    started_at      timestamptz,
    finished_at     timestamptz,
    updated_at      timestamptz not null default now(),
    last_error      text,
    progress        json,
    checkpoint      json,
    result          json,

    constraint finished_when_final
        check ((finished_at is not null) = (state in ('succeeded', 'dead', 'canceled'))),
    -- A job that waits for a claim has an attempt left.
    constraint attempts_within_limit
        check (attempt <= max_attempts
            and (attempt < max_attempts or state not in ('created', 'queued', 'retry')))
) with (fillfactor = 75);

-- Makes submissions idempotent, whichever API servers race.
create unique index jobs_idempotency_key on jobs (tenant, idempotency_key)
    where idempotency_key is not null;

-- The transition table, evaluated inline: a legal update costs nothing measurable,
-- and an illegal one is refused, from any program.
-- +goose StatementBegin
create function refuse_transition() returns trigger language plpgsql as $$
begin
    raise exception 'illegal job transition: % to %', coalesce(old.state::text, 'nothing'), new.state
        using errcode = 'check_violation', constraint = tg_name, detail = 'job ' || new.job_id;
end $$;
-- +goose StatementEnd

create trigger jobs_legal_transition before update of state on jobs
    for each row
    when (old.state is distinct from new.state and not (
        (old.state = 'created' and new.state in ('queued', 'canceled'))
        or (old.state = 'queued' and new.state in ('running', 'canceled'))
        or (old.state = 'running' and new.state in ('succeeded', 'retry', 'dead', 'queued', 'canceled'))
        or (old.state = 'retry' and new.state in ('queued', 'dead', 'canceled'))
        or (old.state = 'dead' and new.state = 'queued')
    ))
    execute function refuse_transition();

-- +goose StatementBegin
create function refuse_birth() returns trigger language plpgsql as $$
begin
    raise exception 'illegal job transition: nothing to %', new.state
        using errcode = 'check_violation', constraint = tg_name, detail = 'job ' || new.job_id;
end $$;
-- +goose StatementEnd

create trigger jobs_legal_birth before insert on jobs
    for each row when (new.state not in ('created', 'queued'))
    execute function refuse_birth();

-- Jobs that a claimer may take, in the order it takes them. urgency is the
-- negated priority, so that one ascending index gives the whole order and a
-- row comparison can continue from a low-water mark.
create table ready (
    job_id   uuid not null,
    job_type text not null,
    urgency  smallint not null,
    run_at   timestamptz not null,
    primary key (job_type, urgency, run_at, job_id)
) with (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 1, autovacuum_analyze_scale_factor = 0.2
);

-- Who owns each running job, until when. lease_id is random: an integer alone
-- can be issued twice after an asynchronous failover.
create table leases (
    job_id           uuid primary key,
    lease_id         uuid not null,
    fence            bigint not null,
    worker_id        text not null,
    claimed_at       timestamptz not null,
    expires_at       timestamptz not null,
    cancel_requested boolean not null default false
) with (
    fillfactor = 75,
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 1, autovacuum_analyze_scale_factor = 0.2
);
create index leases_expires_at on leases (expires_at);

-- Jobs that become due later; 'infinity' for those that are held.
create table timers (
    job_id uuid primary key,
    run_at timestamptz not null
) with (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 1
);
create index timers_run_at on timers (run_at);

create table dead_letters (
    job_id  uuid primary key,
    dead_at timestamptz not null
);
create index dead_letters_dead_at on dead_letters (dead_at, job_id);

-- One row for each attempt that has ended. lease_id proves which owner
-- settled it, which resolves a commit whose answer was lost.
create table job_attempts (
    job_id         uuid not null,
    fence          bigint not null,
    attempt        integer not null,
    lease_id       uuid not null,
    worker_id      text not null,
    -- Null if a reaper ended the attempt: it does not know the plugin.
    plugin         text,
    plugin_version text,
    claimed_at     timestamptz not null,
    ended_at       timestamptz not null,
    outcome        attempt_outcome not null,
    error_code     text,
    error          text,
    stack          text,
    span_id        text,
    primary key (job_id, fence)
);

-- Every start of every orchestrator: a name plus a random suffix, so that a restart
-- under the same name is not mistaken for its predecessor.
create table workers (
    worker_id  text primary key,
    started_at timestamptz not null default now(),
    -- The worker counts as alive until then, by the database's clock.
    alive_until timestamptz not null,
    stopped_at timestamptz,
    -- Names the running system and process namespace that pid belongs to: a process in
    -- the same one can prove by the pid that the worker is gone.
    host       text not null,
    pid        integer not null,
    -- Start time of the process in clock ticks since boot, to distinguish it from a
    -- later process with the same pid.
    pid_started bigint not null,
    -- What it serves, for operators: plugin names, versions, types.
    plugins    json not null default '[]'
);

-- What plugins have declared about their job types, so that a process without
-- plugins can check submissions and reap leases.
create table job_types (
    job_type     text primary key,
    plugin       text not null,
    version      text not null,
    schema       json,
    max_attempts integer not null,
    timeout      interval not null,
    retry        json not null,
    updated_at   timestamptz not null default now()
);

-- +goose Down
drop table job_types, workers, job_attempts, dead_letters, timers, leases, ready, jobs;
drop function refuse_transition, refuse_birth;
drop type attempt_outcome, job_state;

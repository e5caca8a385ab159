-- Jobs that pass gates before they are ready: limits on how many run at once and how many
-- start in a period, fair turns, and pauses of a tenant. Besides: jobs that expire, keys
-- that keep a second job out, and job types that are paused.
--
-- A job with gates is never put into `ready` directly. It is parked in a lane, and the
-- admitter moves it on: into the lane of the gate that it waits for, or into `ready`, where
-- it holds a slot of each of its gates until it leaves both `ready` and `leases`. Nothing
-- changes for jobs without gates: the new columns are null for them, and cost nothing.
--
-- Earlier orchestrators know nothing of gates. Limits are exact once the last of them has
-- stopped: then the admitter counts the slots anew.

-- +goose Up
alter table jobs
    -- What the job must pass: fair:, new:, paused:, key:, tenant: or type:, and a name.
    -- Null for nothing. The first is the lane that it is parked in at first.
    add column gates text[],
    -- What the submission asked for, to compute gates from: concurrencyKey and so on.
    add column terms jsonb,
    -- When the job is canceled unless it has started.
    add column expires_at timestamptz;

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
    j.last_error, j.progress, j.checkpoint, j.result, j.crashes, j.gates, j.terms, j.expires_at
from jobs j
left join leases l on l.job_id between j.job_id and j.job_id;

-- Set for jobs with a turn: their run_at is a virtual time, not the job's. Null, which
-- takes no space, for all others.
alter table ready add column turn boolean;
-- When the job had passed its gates. Null, too, for jobs without gates.
alter table ready add column admitted_at timestamptz;
create index ready_turn on ready (job_id) where turn;

-- Queued jobs that wait at a gate.
create table parked (
    job_id      uuid primary key,
    -- One of its gates; or paused: or stopped: and a name, while its tenant or its type is
    -- paused.
    lane        text not null,
    urgency     smallint not null,
    -- The order within the lane: the job's run_at, or its virtual time if it has a turn.
    position    timestamptz not null,
    turn        boolean,
    job_type    text not null,
    tenant      text not null,
    gates       text[] not null,
    attempt     integer not null default 0,
    -- The submission's own limit of its concurrency key, and what to do when the key is full.
    capacity    integer,
    on_conflict text,
    parked_at   timestamptz not null default now()
) with (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 1, autovacuum_analyze_scale_factor = 0.2
);
-- For lanes only: statements that look for a job must not search it, even if they were
-- planned while the table was empty.
create index parked_order on parked (lane, urgency, position, job_id) where lane is not null;

-- The admitter's inbox: read whole, kept small, without an index. A row names gates that
-- have lost a slot (each as often as it has lost one), or lanes that have got a job. It is
-- written by the statement that frees the slots or parks the jobs, so no crash loses it.
create table wakes (
    gates text[] not null,
    freed boolean not null
) with (autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 1);

-- What is used of each gate. Only the admitter writes here, under its lock. The jobs in
-- `ready` and `leases` with the gate, and the freed slots in the inbox, together are `used`.
create table slots (
    gate      text primary key,
    used      integer not null default 0,
    -- For a rate: how many starts were left at that time.
    tokens    double precision,
    tokens_at timestamptz,
    -- When the admitter must look at the lane again. Null if a wake will tell.
    wake_at   timestamptz
) with (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 1
);
create index slots_wake_at on slots (wake_at) where wake_at is not null;

-- Admitted jobs of gates that must know them one by one: those with a rate, until they
-- start, and those whose oldest job can be canceled, until they end. The position is that
-- in `ready`.
create table admitted (
    gate        text not null,
    job_id      uuid not null,
    job_type    text not null,
    urgency     smallint not null,
    position    timestamptz not null,
    admitted_at timestamptz not null default now(),
    primary key (gate, job_id)
);

-- Start-time fair queueing, for each queue (job type and urgency). The row with the empty
-- key is of the queue itself: start is its virtual time, finish the highest time given to
-- an admitted job. The others are of fairness keys: finish is when their last job has had
-- its turn.
create table turns (
    job_type text not null,
    urgency  smallint not null,
    key      text not null,
    start    timestamptz,
    finish   timestamptz not null,
    primary key (job_type, urgency, key)
) with (fillfactor = 50);

-- The limits, weights and fairness of job types, tenants and classes of keys. The name '*'
-- is for all that have no row.
create table limits (
    scope       text not null check (scope in ('type', 'tenant', 'key', 'fairness')),
    name        text not null,
    concurrency integer check (concurrency >= 0),
    rate        integer check (rate >= 1),
    period      interval check (period > interval '0'),
    burst       integer check (burst >= 1),
    on_conflict text check (on_conflict in ('queue', 'cancel_newcomer', 'cancel_oldest')),
    weight      integer check (weight between 1 and 1000),
    -- Tenants take turns in this job type.
    fair        boolean not null default false,
    -- Whether the row comes from the configuration.
    configured  boolean not null default false,
    updated_by  text not null default '',
    updated_at  timestamptz not null default now(),
    primary key (scope, name),
    check ((rate is null) = (period is null))
);

-- What operators have paused. name is empty for everything.
create table pauses (
    scope     text not null check (scope in ('type', 'plugin', 'tenant', 'all')),
    name      text not null,
    reason    text not null default '',
    paused_by text not null default '',
    since     timestamptz not null default now(),
    -- Null if only an operator ends the pause.
    until     timestamptz,
    -- Attempts that ran when the pause began were asked to stop.
    drain     boolean not null default false,
    primary key (scope, name)
);

-- Which job keeps others out. digest is SHA-256 over tenant, type, and what must be unique.
create table unique_keys (
    digest     bytea primary key,
    job_id     uuid not null,
    -- Null if the key is free again when the job has ended.
    expires_at timestamptz
);
create index unique_keys_expires_at on unique_keys (expires_at) where expires_at is not null;

-- Jobs that are canceled unless they have started by then.
create table expiries (
    job_id     uuid primary key,
    expires_at timestamptz not null
);
create index expiries_expires_at on expiries (expires_at);

-- A job that waits in the queue can be postponed: it is scheduled again, or its next attempt
-- is due later. See 0005 for the rest.
drop trigger jobs_legal_transition on jobs;
create trigger jobs_legal_transition after update of state on jobs
    for each row
    when (old.state is distinct from new.state and not (
        (old.state = 'queued' and (new.state in ('succeeded', 'dead') and new.fence > old.fence
            or new.state in ('created', 'retry', 'canceled')))
        or (old.state = 'created' and new.state in ('queued', 'canceled'))
        or (old.state = 'retry' and new.state in ('queued', 'dead', 'canceled'))
        or (old.state = 'dead' and new.state = 'queued')
    ))
    execute function refuse_transition();

-- What a handler has declared about the gates of its job type.
alter table job_types add column terms json;

-- When an operator asked the worker to stop taking jobs.
alter table workers add column drain_asked_at timestamptz;
-- When it said that it takes none any more, and has given back or finished all.
alter table workers add column drained_at timestamptz;

-- +goose Down
-- Parked jobs are queued jobs.
insert into ready (job_id, job_type, urgency, run_at, attempt)
select p.job_id, p.job_type, p.urgency, j.run_at, p.attempt
from parked p
join jobs j on j.job_id = p.job_id;
update ready r set run_at = j.run_at from jobs j where j.job_id = r.job_id and r.turn;
drop trigger jobs_legal_transition on jobs;
create trigger jobs_legal_transition after update of state on jobs
    for each row
    when (old.state is distinct from new.state and not (
        (old.state = 'queued' and (new.state = 'canceled'
            or new.state in ('succeeded', 'retry', 'dead') and new.fence > old.fence))
        or (old.state = 'created' and new.state in ('queued', 'canceled'))
        or (old.state = 'retry' and new.state in ('queued', 'dead', 'canceled'))
        or (old.state = 'dead' and new.state = 'queued')
    ))
    execute function refuse_transition();
alter table workers drop column drain_asked_at, drop column drained_at;
alter table job_types drop column terms;
drop table expiries, unique_keys, pauses, limits, turns, admitted, slots, wakes, parked;
drop index ready_turn;
alter table ready drop column turn, drop column admitted_at;
drop view current_jobs;
alter table jobs drop column gates, drop column terms, drop column expires_at;
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
    j.last_error, j.progress, j.checkpoint, j.result, j.crashes
from jobs j
left join leases l on l.job_id between j.job_id and j.job_id;

-- Schedules: what makes jobs by the clock. The ticker of whichever orchestrator is first
-- locks the rows that are due, inserts the jobs of their ticks, and moves next_at on, in one
-- transaction. The idempotency key of a job names its tick, so even a tick that is fired
-- again, by a backfill, makes no second job.

-- +goose Up
create table schedules (
    tenant          text not null,
    name            text not null,
    -- When it has ticks: one of the three. The zone and the anchor belong to one each.
    cron            text,
    zone            text not null default '',
    every           interval,
    anchor          timestamptz,
    once_at         timestamptz,
    starts_at       timestamptz,
    ends_at         timestamptz,
    jitter          interval not null default '0',
    overlap         text not null default 'allow' check (overlap in ('allow', 'skip', 'queue', 'cancel_previous')),
    catch_up        text not null default 'last' check (catch_up in ('none', 'last', 'all')),
    catch_up_window interval not null default '24 hours',
    -- A submission, as it was sent.
    job             json not null,

    -- The next tick that has not been fired: ticking never moves it back. Null if none
    -- follows, and while paused.
    next_at         timestamptz,
    -- When to look at the tick again that could not be fired, or that others went before.
    retry_at        timestamptz,
    look_at         timestamptz generated always as (case when next_at is not null then greatest(next_at, retry_at) end) stored,
    paused_at       timestamptz,
    paused_by       text not null default '',
    pause_reason    text not null default '',
    last_tick       timestamptz,
    last_job        uuid,
    last_error      text,
    last_error_at   timestamptz,
    -- What became of the ticks.
    fired           bigint not null default 0,
    skipped         bigint not null default 0,
    missed          bigint not null default 0,
    failed          bigint not null default 0,

    configured      boolean not null default false,
    created_at      timestamptz not null default now(),
    updated_by      text not null default '',
    updated_at      timestamptz not null default now(),
    primary key (tenant, name),
    constraint schedules_timing check (num_nonnulls(cron, every, once_at) = 1),
    constraint schedules_paused check (paused_at is null or next_at is null)
) with (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 1
);
create index schedules_look_at on schedules (look_at) where look_at is not null;

-- +goose Down
drop table schedules;

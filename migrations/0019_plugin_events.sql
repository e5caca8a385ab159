-- What happens to the plugins of all orchestrators, what they are like now, and what
-- operators ask of them.
--
-- Earlier orchestrators go on as before: they record nothing, and answer no command.

-- +goose Up
-- Each swap, rollback, crash and so on, for thirty days.
create table plugin_events (
    -- Made by the orchestrator, so that a write that is repeated adds nothing.
    event_id  uuid primary key,
    at        timestamptz not null,
    worker_id text not null,
    host      text not null,
    plugin    text not null,
    event     text not null,
    version   text not null default '',
    digest    text not null default '',
    -- What started it, such as a changed file; and who asked for it, if somebody did.
    trigger   text not null default '',
    actor     text not null default '',
    reason    text not null default '',
    -- More than 1 if there were too many of a kind in a minute to keep each: the last of
    -- them stands for all.
    count     integer not null default 1 check (count > 0),
    details   json
);
create index plugin_events_at on plugin_events (at, event_id);
create index plugin_events_plugin on plugin_events (plugin, at, event_id);

-- The plugins of each orchestrator, as its API shows them.
create table plugin_status (
    worker_id    text primary key references workers on delete cascade,
    described_at timestamptz not null default now(),
    plugins      json not null
) with (fillfactor = 50);

-- What an operator asks of a plugin of many orchestrators.
create table plugin_commands (
    command_id uuid primary key,
    plugin     text not null,
    verb       text not null check (verb in ('swap', 'restart', 'disable', 'enable')),
    force      boolean not null default false,
    actor      text not null default '',
    reason     text not null default '',
    asked_at   timestamptz not null default now(),
    deadline   timestamptz not null
);
create index plugin_commands_asked_at on plugin_commands (asked_at);

-- A row for each orchestrator that a command is for, from the moment of the command. Worker
-- ids are never used again, so whoever starts later has none.
create table plugin_outcomes (
    command_id uuid not null references plugin_commands on delete cascade,
    worker_id  text not null,
    host       text not null,
    -- When the worker took it on: it never does so twice.
    taken_at   timestamptz,
    ended_at   timestamptz,
    result     text check (result in ('done', 'refused', 'failed')),
    reason     text not null default '',
    -- The swap that came of it.
    swap       json,
    primary key (command_id, worker_id),
    check ((ended_at is null) = (result is null))
) with (fillfactor = 70);
create index plugin_outcomes_open on plugin_outcomes (worker_id) where ended_at is null;

-- +goose Down
drop table plugin_outcomes, plugin_commands, plugin_status, plugin_events;

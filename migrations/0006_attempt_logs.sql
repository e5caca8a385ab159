-- What handlers have logged, attempt by attempt, and what job types say of
-- themselves.
--
-- Of each attempt the last lines are kept, 200 or 32 KB of text, in one row that
-- is written anew at most once a second while the attempt runs, and once when it
-- ends. An attempt that logs nothing has no row. As with unsuccessful_attempts,
-- nothing refers to the ledger: jobs are never removed from it, and whoever does
-- so removes what has the job's id here too.

-- +goose Up
create table attempt_logs (
    job_id  uuid not null,
    fence   bigint not null,
    attempt integer not null,
    -- Of runtime/job.LogLine, oldest first.
    lines   json not null,
    -- How many lines before these were not kept.
    dropped bigint not null check (dropped >= 0),
    primary key (job_id, fence)
);

alter table job_types
    -- Empty, and 0, where the handler does not say.
    add column description text not null default '',
    add column concurrency integer not null default 0;

-- +goose Down
alter table job_types drop column description, drop column concurrency;
drop table attempt_logs;

-- What handlers have logged, for each attempt, and descriptions of job types.
--
-- Only the last lines of an attempt are kept, 200 or 32 KB of text, in one row. It is
-- written at most once a second while the attempt runs, and once when it ends. An attempt
-- that logs nothing has no row. As for unsuccessful_attempts, there is no foreign key to
-- the ledger: jobs are never removed from it. If you remove some, also remove the rows with
-- their ids here.

-- +goose Up
create table attempt_logs (
    job_id  uuid not null,
    fence   bigint not null,
    attempt integer not null,
    -- Of runtime/job.LogLine, oldest first.
    lines   json not null,
    -- How many earlier lines were not kept.
    dropped bigint not null check (dropped >= 0),
    primary key (job_id, fence)
);

alter table job_types
    -- Empty, and 0, if the plugin does not declare them.
    add column description text not null default '',
    add column concurrency integer not null default 0;

-- +goose Down
alter table job_types drop column description, drop column concurrency;
drop table attempt_logs;

-- Who has logged in with a browser, and links that log in once. And indexes to read what
-- people did by tenant and by job.
--
-- Not in a transaction: earlier orchestrators keep running while the indexes are built, and
-- no lock is held for longer than a moment. Every step can be repeated. A build that was
-- interrupted leaves an invalid index, hence the drops.

-- +goose NO TRANSACTION
-- +goose Up
create table if not exists ui_sessions (
    -- The SHA-256 of the cookie. The cookie itself is only with the browser.
    digest     bytea primary key check (octet_length(digest) = 32),
    -- The user, or a token by its name. What they may do is in the configuration.
    caller     text not null,
    -- A keyed hash of the password or the token, for which the key is the cookie: it tells
    -- nothing to those who read this table, and ends the session when either has changed.
    binding    bytea not null,
    created_at timestamptz not null default now(),
    -- Some minutes late at most.
    seen_at    timestamptz not null default now(),
    expires_at timestamptz not null
);
create table if not exists ui_links (
    digest     bytea primary key check (octet_length(digest) = 32),
    caller     text not null,
    binding    bytea not null,
    created_at timestamptz not null default now(),
    expires_at timestamptz not null
);

drop index concurrently if exists audit_log_tenant;
create index concurrently audit_log_tenant on audit_log (tenant, at, audit_id) where tenant is not null;
drop index concurrently if exists audit_log_job;
create index concurrently audit_log_job on audit_log (job_id, at, audit_id) where job_id is not null;

-- +goose Down
drop index concurrently if exists audit_log_job;
drop index concurrently if exists audit_log_tenant;
drop table if exists ui_links;
drop table if exists ui_sessions;

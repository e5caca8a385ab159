-- What dead letters have in common: the code and the fingerprint of the error, and the
-- version of the plugin.
--
-- The program computes fingerprints. It fills in those of jobs that died before, and of
-- those that earlier orchestrators bury, a portion at a time.
--
-- Not in a transaction: earlier orchestrators keep running while the indexes are built,
-- and no lock is held for longer than a moment. Every step can be repeated. A build that
-- was interrupted leaves an invalid index, hence the drops.

-- +goose NO TRANSACTION
-- +goose Up
alter table dead_letters
    add column if not exists error_code text not null default '',
    -- Empty until it is filled in.
    add column if not exists fingerprint text not null default '',
    -- Empty if the attempt ended without its plugin, or until it is filled in.
    add column if not exists plugin_version text not null default '';

-- To find the groups one after another, and the jobs of each by the time of their death. For
-- statements that say so only (every text is >= ''): others must not search them, even if they
-- were planned while the table was empty.
drop index concurrently if exists dead_letters_group;
create index concurrently dead_letters_group on dead_letters (job_type, fingerprint, dead_at, job_id)
    where fingerprint >= '';
drop index concurrently if exists dead_letters_tenant_group;
create index concurrently dead_letters_tenant_group on dead_letters (tenant, job_type, fingerprint, dead_at, job_id)
    where fingerprint >= '';
drop index concurrently if exists dead_letters_unprinted;
create index concurrently dead_letters_unprinted on dead_letters (job_id) where fingerprint = '';

-- +goose Down
alter table dead_letters
    drop column if exists error_code, drop column if exists fingerprint, drop column if exists plugin_version;
drop index concurrently if exists dead_letters_tenant_group;

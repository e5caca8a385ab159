-- Jobs that somebody has submitted anew, perhaps changed.
--
-- Nothing changes for all other jobs: the new column is null for them, and costs nothing.
-- A job may be deleted while the other keeps its id.
--
-- Not in a transaction: earlier orchestrators keep running while the index is built, and
-- no lock is held for longer than a moment. Every step can be repeated. A build that was
-- interrupted leaves an invalid index, hence the drop.

-- +goose NO TRANSACTION
-- +goose Up
-- The job that this one was submitted anew from; null for none. It never changes.
alter table jobs add column if not exists resubmission_of uuid;

-- To list the resubmissions of a job.
drop index concurrently if exists jobs_resubmissions;
create index concurrently jobs_resubmissions on jobs (resubmission_of, job_id) where resubmission_of is not null;

-- +goose Down
drop index concurrently if exists jobs_resubmissions;
alter table jobs drop column if exists resubmission_of;

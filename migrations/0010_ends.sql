-- Jobs that somebody must be told of when they end, and jobs that other jobs have
-- submitted.
--
-- Nothing changes for all other jobs: the new columns are null for them, and cost nothing.
--
-- Earlier orchestrators know nothing of this. A job that one of them ends is not followed
-- up.

-- +goose Up
alter table jobs
    -- The job that submitted this one; null for none.
    add column parent_id uuid,
    -- Whether its end must be put into `ends`. Null for no.
    add column followed boolean;

-- To list the children of a job. parent_id never changes.
create index jobs_parent on jobs (parent_id, job_id) where parent_id is not null;

-- The follower's inbox: read whole, kept small, without an index. The statement that makes a
-- followed job succeeded, dead or canceled adds a row, so no crash loses it.
create table ends (
    job_id uuid not null,
    state  job_state not null,
    at     timestamptz not null
) with (autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 1);

-- +goose Down
drop table ends;
drop index jobs_parent;
alter table jobs drop column parent_id, drop column followed;

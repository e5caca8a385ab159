-- The plugin that may serve a job type: the first that declared it, until an operator
-- gives the type to another. Every orchestrator checks this before a plugin serves, so that
-- no plugin takes the jobs of another by starting first.

-- +goose Up
create table type_owners (
    job_type text primary key,
    -- The plugin's name in the configuration.
    plugin   text not null,
    since    timestamptz not null default now()
);

insert into type_owners (job_type, plugin, since)
select job_type, plugin, updated_at from job_types;

-- +goose Down
drop table type_owners;

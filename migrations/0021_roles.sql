-- What each process does: serve the API, run jobs, maintain.
--
-- Earlier orchestrators do all of it, and say nothing: the default speaks for them.

-- +goose Up
alter table workers add column roles text[] not null default '{api,worker,maintenance}';

-- +goose Down
alter table workers drop column roles;

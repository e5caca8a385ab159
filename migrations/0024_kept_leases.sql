-- A worker that runs thousands of jobs for minutes renews their leases by its own row: a lease
-- that is kept lasts until workers.alive_until of its worker, and its expires_at says nothing.
--
-- Earlier orchestrators renew their leases one by one, as before. They believe expires_at, which
-- workers write again before it has passed: so a lease that a worker has kept and left behind is taken
-- over by them after an hour, if no newer orchestrator does it at once.

-- +goose Up
alter table leases add column kept boolean not null default false;
create index leases_kept on leases (worker_id) where kept;

-- +goose Down
update leases l
set expires_at = coalesce((select w.alive_until from workers w where w.worker_id = l.worker_id), now())
where kept;
alter table leases drop column kept;

-- A job runs while it has a lease: the ledger is not told when it is claimed,
-- but with its end. A job that is claimed is `queued` in the ledger, and not in
-- the ready list any more. current_jobs shows every job as it is.
--
-- The ledger also keeps what is to be told of the attempt that a job succeeded
-- by, so that it needs no row of its own; the view job_attempts has all of them.
--
-- Orchestrators of before must have been stopped: they would settle what they
-- have not claimed.

-- +goose Up
alter table jobs
    -- Under which lease, and where, the job succeeded.
    add column lease_id uuid,
    add column plugin text,
    add column plugin_version text,
    add column span_id text;

update jobs j
set state = 'queued', attempt = j.attempt - 1, fence = j.fence - 1
from leases l
where l.job_id = j.job_id and j.state = 'running';

-- Renewing a lease is a heap-only update without it; whoever looks for expired
-- ones reads them all, which are as many as there are running jobs.
drop index leases_expires_at;

-- A job that succeeds at once is written twice, the second time with a quarter
-- more. Jobs of one page are settled in one transaction, so that no room is
-- gained meanwhile: half a page free makes every one of these updates heap-only,
-- where 75 left a third of them, and the indexes grew instead. Of 200,000 no-op
-- jobs: 954 bytes of WAL against 1,319, PostgreSQL 24 µs of CPU against 27, and
-- tables and indexes as large (171 MB and 156 to 170).
alter table jobs set (fillfactor = 45);

-- An attempt ends with a fence that is higher than that of the one before. The
-- trigger looks after the update: before, the server would lock each row first,
-- at the price of a WAL record and a third of the time that a settlement takes
-- (500 jobs: 5.7 ms, and 3.5 ms after).
drop trigger jobs_legal_transition on jobs;
create trigger jobs_legal_transition after update of state on jobs
    for each row
    when (old.state is distinct from new.state and not (
        (old.state = 'queued' and (new.state = 'canceled'
            or new.state in ('succeeded', 'retry', 'dead') and new.fence > old.fence))
        or (old.state = 'created' and new.state in ('queued', 'canceled'))
        or (old.state = 'retry' and new.state in ('queued', 'dead', 'canceled'))
        or (old.state = 'dead' and new.state = 'queued')
    ))
    execute function refuse_transition();

-- Every job as it is: as the ledger has it, or, while it runs, its lease.
create view current_jobs as
select j.job_id, j.tenant, j.job_type, j.priority, j.idempotency_key, j.request_hash, j.payload, j.tags,
    j.trace_parent, j.trace_state, j.max_attempts, j.timeout, j.created_at,
    case when l.job_id is null then j.state else 'running' end as state,
    j.run_at,
    case when l.job_id is null then j.attempt else j.attempt + 1 end as attempt,
    j.interruptions,
    coalesce(l.fence, j.fence) as fence,
    coalesce(l.worker_id, j.worker_id) as worker_id,
    coalesce(l.claimed_at, j.started_at) as started_at,
    j.finished_at,
    greatest(j.updated_at, l.claimed_at) as updated_at,
    j.last_error, j.progress, j.checkpoint, j.result
from jobs j
-- Not "=": see TestPlansOfTheHotStatementsAfterAQuietNight.
left join leases l on l.job_id between j.job_id and j.job_id;

-- Every attempt that has ended. Those that succeeded before now have rows.
alter table job_attempts rename to unsuccessful_attempts;
alter index job_attempts_pkey rename to unsuccessful_attempts_pkey;
create view job_attempts as
select job_id, fence, attempt, lease_id, worker_id, plugin, plugin_version, claimed_at, ended_at,
    outcome, error_code, error, stack, span_id
from unsuccessful_attempts
union all
select job_id, fence, attempt, lease_id, worker_id, plugin, plugin_version, started_at, finished_at,
    'succeeded'::attempt_outcome, null, null, null, span_id
from jobs
where lease_id is not null;

-- +goose Down
drop view job_attempts, current_jobs;
alter table unsuccessful_attempts rename to job_attempts;
alter index unsuccessful_attempts_pkey rename to job_attempts_pkey;
drop trigger jobs_legal_transition on jobs;
update jobs j
set state = 'running', attempt = j.attempt + 1, fence = l.fence, worker_id = l.worker_id,
    started_at = l.claimed_at
from leases l
where l.job_id = j.job_id;
create trigger jobs_legal_transition before update of state on jobs
    for each row
    when (old.state is distinct from new.state and not (
        (old.state = 'created' and new.state in ('queued', 'canceled'))
        or (old.state = 'queued' and new.state in ('running', 'canceled'))
        or (old.state = 'running' and new.state in ('succeeded', 'retry', 'dead', 'queued', 'canceled'))
        or (old.state = 'retry' and new.state in ('queued', 'dead', 'canceled'))
        or (old.state = 'dead' and new.state = 'queued')
    ))
    execute function refuse_transition();
create index leases_expires_at on leases (expires_at);
alter table jobs set (fillfactor = 75);
insert into job_attempts (
    job_id, fence, attempt, lease_id, worker_id, plugin, plugin_version, claimed_at, ended_at, outcome, span_id
)
select job_id, fence, attempt, lease_id, worker_id, plugin, plugin_version, started_at, finished_at,
    'succeeded', span_id
from jobs
where lease_id is not null;
alter table jobs drop column lease_id, drop column plugin, drop column plugin_version, drop column span_id;

-- Figures of the whole system without reading the ledger.
--
-- The narrow lists show how many jobs wait, run or are dead, and after how many attempts.
-- Ended jobs are tallied: each statement that ends something adds one row for its whole
-- batch to the inbox, and every few seconds the inbox is added to the totals. Totals and
-- inbox together are exact at any moment.

-- +goose Up
create type tally_event as enum (
    -- A job was submitted.
    'submitted',
    -- An attempt ended; for all of these but the last, so did the job.
    'succeeded', 'dead', 'canceled', 'failed',
    -- A job that waited was canceled.
    'withdrawn',
    -- A dead job was given new attempts.
    'requeued'
);

-- Attempts charged so far, and which state a timer is of.
alter table ready add column attempt integer not null default 0;
alter table timers
    add column attempt integer not null default 0,
    add column state job_state not null default 'created';
update ready r set attempt = j.attempt from jobs j where j.job_id = r.job_id and j.attempt > 0;
update timers t set attempt = j.attempt, state = j.state from jobs j where j.job_id = t.job_id and j.state = 'retry';

-- The inbox: read whole, kept small, without an index.
create table tallies (
    -- Ten seconds of the database's clock.
    slot      timestamptz not null,
    job_type  text not null,
    -- The worker whose attempt ended; empty if there was none.
    worker_id text not null,
    event     tally_event not null,
    -- How many attempts the jobs were charged.
    attempt   integer not null,
    jobs      bigint not null,
    -- How long the attempts took, together.
    seconds   double precision not null
) with (autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 1);

-- All events, ever.
create table tally_totals (
    job_type text,
    event    tally_event,
    jobs     bigint not null,
    seconds  double precision not null,
    primary key (job_type, event)
) with (fillfactor = 50);

-- Recent events: slots of ten seconds, later merged into minutes.
create table tally_slots (
    slot     timestamptz,
    job_type text,
    event    tally_event,
    jobs     bigint not null,
    primary key (slot, job_type, event)
) with (fillfactor = 75);

-- What workers have ended, for as long as the worker is known.
create table tally_workers (
    worker_id text,
    event     tally_event,
    jobs      bigint not null,
    primary key (worker_id, event)
) with (fillfactor = 50);

-- Jobs in a final state, by the attempts that they were charged.
create table tally_attempts (
    attempt integer primary key,
    jobs    bigint not null
) with (fillfactor = 50);

-- Existing jobs. Earlier orchestrators do not tally, so the figures are exact once the
-- last of them has stopped.
insert into tally_totals
select job_type, 'submitted'::tally_event, count(*), 0::double precision from jobs group by job_type
union all
select j.job_type, 'succeeded', count(*), coalesce(sum(extract(epoch from a.ended_at - a.claimed_at)), 0)
from jobs j
left join job_attempts a on a.job_id = j.job_id and a.outcome = 'succeeded'
where j.state = 'succeeded'
group by j.job_type
union all
select job_type, 'canceled', count(*), 0 from jobs where state = 'canceled' group by job_type
union all
select j.job_type, 'failed', count(*), 0
from job_attempts a
join jobs j on j.job_id = a.job_id
where a.outcome in ('failed', 'permanent', 'timeout', 'crashed', 'lease_expired')
group by j.job_type;

insert into tally_workers
select worker_id, state::text::tally_event, count(*)
from jobs where state in ('succeeded', 'dead', 'canceled') and worker_id is not null
group by worker_id, state;

insert into tally_attempts
select attempt, count(*) from jobs where state in ('succeeded', 'dead', 'canceled') group by attempt;

-- +goose Down
drop table tallies, tally_totals, tally_slots, tally_workers, tally_attempts;
drop type tally_event;
alter table ready drop column attempt;
alter table timers drop column attempt, drop column state;

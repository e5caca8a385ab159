-- Callbacks: whom to tell when a job ends. Events: what has ended, for clients that follow
-- all of it.
--
-- Nothing changes for jobs that nobody follows.

-- +goose Up

-- Where to announce the end of the job; null for nowhere. Such a job is followed.
alter table jobs add column callback_url text;

-- Ends that could not be announced, since no plugin has ever declared the job type of
-- deliveries, or the delivery was refused. The follower tries them again, but gives up those
-- that the database has refused for a day: they stay to be seen, and nothing waits for them.
-- Usually empty.
create table undelivered (
    job_id       uuid not null,
    state        job_state not null,
    at           timestamptz not null,
    reason       text not null,
    since        timestamptz not null default now(),
    tried_at     timestamptz not null default now(),
    given_up_at timestamptz,
    constraint undelivered_pkey primary key (job_id, at)
);

-- The ends of all jobs, in the order in which the follower has recorded them. It is the one
-- writer, so that ids become visible in their order, and have no gaps. Those that are too
-- old, or too many, are deleted from the beginning.
create table events (
    id          bigint primary key,
    at          timestamptz not null,
    job_id      uuid not null,
    job_type    text not null,
    tenant      text not null,
    tags        text[] not null,
    state       job_state not null,
    recorded_at timestamptz not null default now()
) with (autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 1);

-- The last id that was given to an event: one row.
create table last_event (
    id bigint not null
) with (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

insert into last_event values (0);

-- +goose Down
drop table last_event;
drop table events;
drop table undelivered;
alter table jobs drop column callback_url;

-- Tallies that agree with the jobs, the latencies of a day, and what else pages show: the audit
-- log, operations, schedules, events of plugins, workers that have stopped.
insert into tally_totals (job_type, event, jobs, seconds)
select job_type, event, sum(jobs), sum(jobs)
from (
    select job_type, 'submitted'::tally_event as event, count(*) as jobs from jobs group by job_type
    union all
    select job_type, case state when 'succeeded' then 'succeeded' when 'dead' then 'dead' else 'withdrawn' end::tally_event, count(*)
    from jobs where finished_at is not null group by job_type, state
    union all
    select job_type, 'failed', count(*) from jobs where state in ('dead', 'retry') group by job_type
) happened
group by job_type, event;
insert into tally_attempts (attempt, jobs) select attempt, count(*) from jobs where finished_at is not null group by attempt;
insert into tally_workers (worker_id, event, jobs)
select worker_id, state::text::tally_event, count(*) from jobs where worker_id is not null and state in ('succeeded', 'dead') group by worker_id, state;
insert into tally_slots (slot, job_type, event, jobs)
select slot, job_type, event, 20
from generate_series(date_trunc('minute', now()) - interval '24 hours', now(), interval '1 minute') slot
cross join (select distinct job_type from ready) of
cross join unnest('{submitted,succeeded,dead,failed}'::tally_event[]) event;
insert into latency_slots (slot, job_type, waits, runs)
select slot, job_type, array_fill(7, array[24]), array_fill(5, array[18])
from generate_series(date_trunc('minute', now()) - interval '24 hours', now(), interval '1 minute') slot
cross join (select distinct job_type from ready union select '') of;
insert into audit_log (at, actor, action, tenant, job_id, reason, result)
select now() - i * interval '8 seconds', 'token:' || i % 7, (array['cancel', 'requeue', 'hold', 'release', 'pause'])[1 + i % 5],
    case when i % 3 = 0 then 'tenant-' || i % 200 else 'default' end, gen_random_uuid(), 'on request', 'done'
from generate_series(1, 100000) i;
insert into operations (operation_id, action, filter, frozen_at, tenant, rate, reason, started_by, state, expected, expected_more, found, done, started_at, finished_at)
select (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '70008' || lpad(to_hex(i), 15, '0'))::uuid,
    'requeue', '{"Type": "MAIL"}', at, '', 100, 'the partner is back', 'admin', 'finished', 5000, false, 5000, 5000, at, at + interval '1 minute'
from (select i, now() - i * interval '1 hour' as at from generate_series(1, 500) i) past;
insert into schedules (tenant, name, cron, job, next_at)
select 'default', 'nightly-' || i, '30 6 * * 1-5', '{"jobType": "MAIL", "payload": {}}', now() + interval '10 hours' from generate_series(1, 500) i;
insert into plugin_events (event_id, at, worker_id, host, plugin, event, version, reason)
select (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '70008' || lpad(to_hex(i), 15, '0'))::uuid,
    at, 'worker-' || 1 + i % 4, 'host', 'shop', (array['crashed', 'started'])[1 + i % 2], 'v1.7.0', 'exit status 2'
from (select i, now() - i * interval '1 minute' as at from generate_series(1, 20000) i) past;
insert into workers (worker_id, started_at, alive_until, stopped_at, host, pid, pid_started)
select 'worker-' || i, now() - interval '10 days', now() - interval '1 hour', now() - interval '1 hour', 'host', i, i from generate_series(1, 4) i;

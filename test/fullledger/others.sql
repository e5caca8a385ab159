insert into wakes values (array['key:smtp:1', 'key:smtp:1', 'a "b"'], true), (array['key:smtp:1', 'key:smtp:1', 'a "b"'], true), ('{}', false);
insert into slots (gate, used, tokens, tokens_at, wake_at)
select 'key:smtp:' || i, i, case when i % 2 = 0 then 1.0::float8 / 3 * i end, now(), case when i % 3 = 0 then now() end from generate_series(1, 60) i;
insert into admitted select 'rate:' || i, gen_random_uuid(), 'ECHO', 1, now(), now() from generate_series(1, 10) i;
insert into turns values ('ECHO', 0, '', now(), now()), ('ECHO', 0, 'acme', null, 'infinity');
insert into limits (scope, name, concurrency, rate, period, burst, on_conflict, weight, fair, configured)
values ('type', 'ECHO', 5, 100, '1 mon 2 days 00:00:01.5', 7, 'queue', 3, true, true), ('tenant', '*', null, null, null, null, null, null, false, false);
insert into pauses (scope, name, reason, until) values ('tenant', 'acme', E'it''s\nbroken', null), ('all', '', '', 'infinity');
insert into workflows (workflow_id, tenant, name, idempotency_key, request_hash, jobs, remaining, on_complete, completed)
values (gen_random_uuid(), 'acme', 'nightly', 'key', '\x00ff', 2, 1, gen_random_uuid(), false);
insert into workflow_jobs (job_id, workflow_id, position, on_death, missing, run_at, delay, ended)
select gen_random_uuid(), workflow_id, 0, 'wait', 1, 'infinity', '1 hour', 'succeeded' from workflows;
insert into workflow_edges select job_id, gen_random_uuid(), 0 from workflow_jobs;
insert into schedules (tenant, name, cron, zone, job, next_at, retry_at, fired)
values ('acme', 'hourly', '0 * * * *', 'Europe/Berlin', E'{"type":\n"ECHO"}', now() + interval '1 hour', null, 5);
insert into ends values (gen_random_uuid(), 'succeeded', now()), (gen_random_uuid(), 'dead', now());
insert into undelivered (job_id, state, at, reason) values (gen_random_uuid(), 'dead', now(), 'no handler');
insert into events select i, now(), gen_random_uuid(), 'ECHO', 'acme', array['a', null], 'succeeded', now() from generate_series(1, 100) i;
update last_event set id = 100;
insert into tallies select now(), 'ECHO', 'worker-1', 'succeeded', 1, 1, 0.1 from generate_series(1, 20);
insert into tally_totals values ('ECHO', 'succeeded', 9007199254740993, 1e308), ('ECHO', 'failed', 1, 0.1::float8 + 0.2), ('ECHO', 'canceled', 1, '-0');
insert into tally_slots values (now(), 'ECHO', 'succeeded', 1);
insert into tally_attempts values (1, 7), (2, 1);
insert into latency_slots values (now(), '', '{0,1,2}', '{}');
insert into job_types (job_type, plugin, version, schema, max_attempts, timeout, retry, description, terms)
values ('ECHO', 'builtin', 'v1', '{"type": "object"}', 4, '30 s', '{}', 'says "it"', null);
insert into type_owners (job_type, plugin) values ('ECHO', 'builtin'), ('SEND_EMAIL', 'builtin');
insert into plugin_events (event_id, at, worker_id, host, plugin, event, details) values (gen_random_uuid(), now(), 'w', 'h', 'builtin', 'swapped', '{"a": [1 ,2]}');
insert into operations (operation_id, action, filter, frozen_at, tenant, rate, reason, started_by, expected, expected_more)
values (gen_random_uuid(), 'requeue', '{"type": "ECHO"}', now(), '', 10, 'because', 'ann', 5, true);
insert into retention (walk, policies, job_id, began_at, worker_id, worked_at, caught_up_at)
values ('ended', '{"": 1}', gen_random_uuid(), now(), 'w', now(), '-infinity');
insert into erasures (erasure_id, tenant, reason, asked_by) values (gen_random_uuid(), 'acme', 'asked', 'ann');
insert into audit_log (actor, action, filter, reason) select 'ann', 'job.cancel', '{"b": 1, "a": 2}', 'r' || i from generate_series(1, 30) i;
delete from audit_log where audit_id > 25;
-- What does not move.
insert into workers (worker_id, alive_until, stopped_at, host, pid, pid_started) values ('worker-1', now() - interval '1 hour', null, 'h', 1, 1);
insert into plugin_status (worker_id, plugins) values ('worker-1', '[]');
insert into tally_workers values ('worker-1', 'succeeded', 4);
insert into ui_sessions (digest, caller, binding, expires_at) values (decode(repeat('00', 32), 'hex'), 'ann', '', now());

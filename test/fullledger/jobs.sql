-- Jobs $first to $last, each with its list. The texts have all that a file could spoil.
create temp table made on commit drop as
select i,
    (lpad(to_hex(1750000000000 + i), 12, '0') || '7000' || '8' || lpad(to_hex(i), 15, '0'))::uuid as job_id,
    (array['created', 'queued', 'parked', 'retry', 'dead', 'canceled', 'succeeded', 'succeeded', 'succeeded', 'succeeded'])[i % 10 + 1] as kind,
    (array['default', 'acme', 'tenänt 日本'])[i % 3 + 1] as tenant,
    (array['ECHO', 'SEND_EMAIL'])[i % 2 + 1] as job_type,
    (i % 5 - 2)::smallint as priority,
    timestamptz '2026-01-01 00:00:00.123456+00' + i * interval '1 second' as at,
    case when i % 100 = 0 then timestamptz 'infinity' else timestamptz '2026-01-02 00:00:00+00' + i * interval '1 second' end as run_at,
    case when i % 10 = 2 then array['key:smtp:' || i % 50, 'tenant:acme'] end as gates,
    case when i % 20 = 0 then timestamptz '2036-01-01 00:00:00+00' + i * interval '1 ms' end as expires_at
from generate_series($first, $last) i;

insert into jobs (job_id, tenant, job_type, priority, idempotency_key, request_hash, payload, tags, trace_parent, trace_state,
    max_attempts, timeout, created_at, state, run_at, attempt, interruptions, fence, worker_id, started_at, finished_at, updated_at,
    last_error, progress, checkpoint, result, lease_id, plugin, plugin_version, span_id, crashes, gates, terms, expires_at,
    parent_id, followed, erased_at, callback_url, began_ms, resubmission_of)
select job_id, tenant, job_type, priority, case when i % 4 = 0 then E'key\t"' || i end, decode(md5(i::text) || md5(i::text), 'hex'),
    (array[
        '{"n": 1}',
        E'{\n\t"spaced" :\r\n 1e400, "n": 12345678901234567890.12345678901234567890}',
        E'"\\u0000 \\ud800 \\\\N \\\\. \\""',
        '["日本", "🎉", null]',
        '{"long": "' || repeat('0123456789', 30) || '"}',
        E'"\\\\"', '{}'
    ])[i % 7 + 1]::json,
    case i % 3 when 0 then '{}' when 1 then array['a,b', '"quoted"', E'back\\slash', ''] else array[E'tab\t', 'NULL', '{}'] end,
    '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', case when i % 3 = 0 then E'a=b\nbaggage' else '' end,
    4, interval '1 day 30.5 seconds', at,
    case kind when 'parked' then 'queued' else kind end::job_state,
    run_at,
    case when kind in ('retry', 'dead', 'succeeded') then 1 else 0 end, i % 2, case when kind in ('retry', 'dead', 'succeeded') then 3 else 0 end,
    case when kind in ('retry', 'dead', 'succeeded') then 'worker-1 ' || i % 3 end,
    case when kind in ('retry', 'dead', 'succeeded') then at + interval '1 second' end,
    case when kind in ('dead', 'canceled', 'succeeded') then at + interval '2 seconds' end,
    at + interval '3 seconds',
    case when kind in ('retry', 'dead') then E'tab\t line\nreturn\r back\b feed\f vertical\v bell\x07 delete\x7f \\N \\. \\\\ "' end,
    case when i % 5 = 0 then '{"done": 0.1}' end::json, case when i % 6 = 0 then '[1, 2 ]' end::json,
    case when kind = 'succeeded' and i % 2 = 0 then '{"ok":true}' end::json,
    case when kind = 'succeeded' then md5('lease' || i)::uuid end, case when kind = 'succeeded' then 'builtin' end,
    case when kind = 'succeeded' then 'v1.0.0' end, case when kind = 'succeeded' then 'b7ad6b7169203331' end,
    i % 2, gates, case when gates is not null then '{"concurrencyKey": "smtp"}'::jsonb end, expires_at,
    case when i % 9 = 0 then md5('parent' || i)::uuid end, case when i % 8 = 0 then true end, case when i % 50 = 5 then at end,
    case when i % 11 = 0 then 'https://example.com/?a=1&b=2' end, case when kind = 'succeeded' then i % 1000 end,
    case when i % 13 = 0 then md5('again' || i)::uuid end
from made;

insert into ready (job_id, job_type, urgency, run_at, attempt) select job_id, job_type, -priority, run_at, 0 from made where kind = 'queued';
insert into parked (job_id, lane, urgency, position, job_type, tenant, gates, capacity, on_conflict)
select job_id, gates[1], -priority, run_at, job_type, tenant, gates, case when i % 20 = 2 then 3 end, case when i % 20 = 2 then 'queue' end
from made where kind = 'parked';
insert into timers (job_id, run_at, attempt, state, job_type)
select job_id, run_at, case kind when 'retry' then 1 else 0 end, kind::job_state, job_type from made where kind in ('created', 'retry');
insert into dead_letters (job_id, dead_at, job_type, tenant, erased, error_code, fingerprint, plugin_version)
select job_id, at + interval '2 seconds', job_type, tenant, case when i % 20 = 4 then true end, 'E' || i % 3, 'print ' || i % 7, 'v1.0.0' from made where kind = 'dead';
insert into expiries select job_id, expires_at from made where kind = 'created' and expires_at is not null;
insert into unique_keys select decode(md5(i::text), 'hex'), job_id, case when i % 3 = 0 then at end from made where i % 30 = 0;
insert into unsuccessful_attempts (job_id, fence, attempt, lease_id, worker_id, plugin, plugin_version, claimed_at, ended_at, outcome,
    error_code, error, stack, span_id, due_at, began_ms, done_ms)
select job_id, f, 1, md5('lease' || i || f)::uuid, 'worker-1 2', case f when 3 then 'builtin' end, 'v1.0.0', at, at + interval '0.000001 s',
    case f when 3 then 'failed' else 'given_back' end::attempt_outcome, 'E1', E'SMTP: 451\r\nlater', E'at line 1\n\tat line 2', 'b7ad6b7169203331', run_at, 1, null
from made, generate_series(2, 3) f where kind in ('retry', 'dead');
insert into attempt_logs (job_id, fence, attempt, lines, dropped)
select job_id, 3, 1, '[{"at": "2026-01-01T00:00:00Z", "text": "a\u0000\tb"}]', i from made where kind in ('retry', 'dead');

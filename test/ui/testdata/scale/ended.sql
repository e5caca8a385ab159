-- Writes the jobs $1 to $2 of $3 that have ended in the last ten days: 3 % are dead, of a few
-- hundred kinds of error, and 1.5 % canceled. A fifth have a key, half have tags.
with numbered as (
    select i, now() - interval '10 days' + i * (interval '10 days' / $3::float8) as at,
        abs(hashint8extended(i, 1) % 1000) as fate,
        abs(hashint8extended(i, 2) % 1000000) / 1e6 as kind,
        abs(hashint8extended(i, 3) % 1000) as whose,
        abs(hashint8extended(i, 4) % 35)::integer as fault
    from generate_series($1::bigint, $2) i
), past as materialized (
    select i, at, fault,
        (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '7000' || '8' || lpad(to_hex(i), 15, '0'))::uuid as job_id,
        (case when fate < 955 then 'succeeded' when fate < 985 then 'dead' else 'canceled' end)::job_state as state,
        (array['MAIL', 'INVOICE', 'CHARGE', 'RESIZE', 'INDEX', 'SYNC', 'BILLING', 'EXPORT', 'IMPORT', 'NOTIFY', 'ARCHIVE', 'AUDIT'])
            [1 + floor(12 * kind * kind * kind)::integer] as job_type,
        case when whose < 700 then 'default' else 'tenant-' || (whose * whose / 5000) end as tenant,
        'worker-' || 1 + i % 4 as worker,
        (array['', 'UPSTREAM', 'VALIDATION', 'TIMEOUT', 'PAYMENT'])[1 + fault % 5] as code,
        (array['dial tcp 10.0.0.7:5432: connection refused', 'order has no address', 'the card was declined', 'the partner answered 503',
            'the ledger is locked', 'there is no such template', 'no answer in time'])[1 + fault / 5] || ' (step ' || fault % 5 || '): request ' || i as error,
        'v1.' || i * 8 / $3 || '.0' as version
    from numbered
), written as (
    insert into jobs (job_id, tenant, job_type, priority, idempotency_key, request_hash, payload, tags, trace_parent, trace_state,
        max_attempts, timeout, created_at, state, run_at, attempt, fence, worker_id, started_at, finished_at, updated_at, last_error,
        result, lease_id, plugin, plugin_version, span_id, began_ms)
    select job_id, tenant, job_type, i % 3, case when i % 5 = 0 then 'order-' || i end, decode(md5(i::text) || md5(i::text), 'hex'),
        ('{"to": "customer' || i % 9973 || '@example.com", "subject": "Your order ' || i || '", "amount": "' || i % 977 || '.90"}')::json,
        case when i % 2 = 0 then '{}' else array['region:' || (array['eu', 'us', 'apac'])[1 + i % 3], 'customer:' || i % 9973] end,
        '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', '', 2, '30 seconds', at, state, at,
        case state when 'dead' then 2 when 'succeeded' then 1 else 0 end, case state when 'dead' then 2 when 'succeeded' then 1 else 0 end,
        case when state <> 'canceled' then worker end, case when state <> 'canceled' then at + interval '200 milliseconds' end,
        at + interval '1 second', at + interval '1 second', case state when 'dead' then error end,
        case when state = 'succeeded' and i % 2 = 0 then '{"messageId": "0af7651916cd43dd"}'::json end,
        case when state = 'succeeded' then gen_random_uuid() end, case when state = 'succeeded' then 'shop' end,
        case when state = 'succeeded' then version end, case when state = 'succeeded' then 'b7ad6b7169203331' end,
        case when state = 'succeeded' then 12 end
    from past
), failed as (
    insert into unsuccessful_attempts (job_id, fence, attempt, lease_id, worker_id, plugin, plugin_version, claimed_at, ended_at, outcome,
        error_code, error, due_at, began_ms, done_ms)
    select job_id, n, n, gen_random_uuid(), worker, 'shop', version, at, at + interval '1 second', 'failed', nullif(code, ''), error, at, 5, 900
    from past
    cross join generate_series(1, 2) n
    where state = 'dead'
), logged as (
    insert into attempt_logs (job_id, fence, attempt, lines, dropped)
    select job_id, 2, 2, '[]', 0
    from past
    where state = 'dead' and i % 10 = 0
)
insert into dead_letters (job_id, dead_at, job_type, tenant, error_code, fingerprint, plugin_version)
select job_id, at + interval '1 second', job_type, tenant, code, left(md5(fault::text), 16), version
from past
where state = 'dead';

-- Writes the jobs $1 to $2 of $3 that are open, submitted in the last day: 70 % are queued, 15 %
-- scheduled, 5 % held and 10 % retrying.
with numbered as (
    select i, now() - interval '1 day' + i * (interval '1 day' / $3::float8) as at,
        abs(hashint8extended(i, 5) % 1000) as fate,
        abs(hashint8extended(i, 6) % 1000000) / 1e6 as kind,
        abs(hashint8extended(i, 7) % 1000) as whose
    from generate_series($1::bigint, $2) i
), submitted as materialized (
    select i, at,
        (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '7001' || '8' || lpad(to_hex(i), 15, '0'))::uuid as job_id,
        (case when fate < 700 then 'queued' when fate < 900 then 'created' else 'retry' end)::job_state as state,
        case when fate < 700 then at when fate < 850 then now() + i % 1000 * interval '1 hour' when fate < 900 then 'infinity'
            else now() + i % 300 * interval '1 hour' end as run_at,
        (array['MAIL', 'INVOICE', 'CHARGE', 'RESIZE', 'INDEX', 'SYNC', 'BILLING', 'EXPORT', 'IMPORT', 'NOTIFY', 'ARCHIVE', 'AUDIT'])
            [1 + floor(12 * kind * kind * kind)::integer] as job_type,
        case when whose < 700 then 'default' else 'tenant-' || (whose * whose / 5000) end as tenant,
        case when fate < 900 then 0 else 1 end as attempt
    from numbered
), written as (
    insert into jobs (job_id, tenant, job_type, priority, request_hash, payload, tags, trace_parent, trace_state, max_attempts, timeout,
        created_at, state, run_at, attempt, fence, updated_at, last_error)
    select job_id, tenant, job_type, i % 3, decode(md5(i::text) || md5(i::text), 'hex'),
        ('{"to": "customer' || i % 9973 || '@example.com", "subject": "Your order ' || i || '", "amount": "' || i % 977 || '.90"}')::json,
        case when i % 2 = 0 then '{}' else array['region:' || (array['eu', 'us', 'apac'])[1 + i % 3], 'customer:' || i % 9973] end,
        '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', '', 20, '30 seconds', at, state, run_at, attempt, attempt, at,
        case when attempt > 0 then 'the partner answered 503: request ' || i end
    from submitted
), failed as (
    insert into unsuccessful_attempts (job_id, fence, attempt, lease_id, worker_id, plugin, plugin_version, claimed_at, ended_at, outcome,
        error_code, error, due_at, began_ms, done_ms)
    select job_id, 1, 1, gen_random_uuid(), 'worker-1', 'shop', 'v1.7.0', at, at + interval '1 second', 'failed', 'UPSTREAM',
        'the partner answered 503: request ' || i, at, 5, 900
    from submitted
    where attempt > 0
), queued as (
    insert into ready (job_id, job_type, urgency, run_at, attempt)
    select job_id, job_type, -(i % 3), run_at, attempt
    from submitted
    where state = 'queued'
)
insert into timers (job_id, run_at, attempt, state, job_type)
select job_id, run_at, attempt, state, job_type
from submitted
where state <> 'queued';

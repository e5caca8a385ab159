-- Store what plugins declare about their job types. A declaration that has not changed
-- is not written again.
-- Clock: now().
-- Locks: key order (the caller sorts by type).
-- Index: job_types_pkey.
insert into job_types as t (
    job_type, plugin, version, schema, max_attempts, timeout, retry, description, concurrency, terms
)
select job_type, plugin, version, schema::json, max_attempts, timeout, retry::json, description, concurrency, terms::json
from unnest(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::integer[], $6::interval[], $7::text[], $8::text[], $9::integer[],
    $10::text[]
) as d (job_type, plugin, version, schema, max_attempts, timeout, retry, description, concurrency, terms)
on conflict (job_type) do update
set plugin = excluded.plugin, version = excluded.version, schema = excluded.schema,
    max_attempts = excluded.max_attempts, timeout = excluded.timeout, retry = excluded.retry,
    description = excluded.description, concurrency = excluded.concurrency, terms = excluded.terms,
    updated_at = now()
where (t.plugin, t.version, t.schema::text, t.max_attempts, t.timeout, t.retry::text, t.description, t.concurrency,
        t.terms::text)
    is distinct from (excluded.plugin, excluded.version, excluded.schema::text, excluded.max_attempts,
        excluded.timeout, excluded.retry::text, excluded.description, excluded.concurrency, excluded.terms::text);

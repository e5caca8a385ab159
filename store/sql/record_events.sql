-- Record ends as events, in the order given: jobs $1 of types $2 and tenants $3, with tags $4,
-- in states $5 since $6. The ids continue those of the events before.
-- Locks: the row of last_event. The caller is the one who follows, so that ids become visible
-- in their order.
-- Index: events_pkey.
with taken as (
    update last_event set id = id + cardinality($1::uuid[]) returning id - cardinality($1::uuid[]) as before
)
insert into events (id, at, job_id, job_type, tenant, tags, state)
select (select before from taken) + e.n, e.at, e.job_id, e.job_type, e.tenant,
    case when e.tags is null then '{}' else array(select json_array_elements_text(e.tags::json)) end, e.state::job_state
from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[])
    with ordinality as e (job_id, job_type, tenant, tags, state, at, n);

-- Add how long jobs of the types $2 have waited ($3) and run ($4) to their slot: the one in
-- which it was $1 ago. Returns how many seconds of the current slot have passed, so that the
-- caller can come again when it ends.
-- Clock: now(); clock_timestamp() for the answer.
-- Locks: rows of one slot in the order sent (the caller sorts by type).
-- Index: latency_slots_pkey.
with added as (
    insert into latency_slots as l (slot, job_type, waits, runs)
    select date_bin('10 seconds', now() - $1::interval, 'epoch'), job_type, waits::bigint[], runs::bigint[]
    from unnest($2::text[], $3::text[], $4::text[]) as b (job_type, waits, runs)
    on conflict (slot, job_type) do update
    set waits = array(
            select coalesce(a, 0) + coalesce(b, 0)
            from unnest(l.waits, excluded.waits) with ordinality as u (a, b, n)
            order by n
        ),
        runs = array(
            select coalesce(a, 0) + coalesce(b, 0)
            from unnest(l.runs, excluded.runs) with ordinality as u (a, b, n)
            order by n
        )
)
select extract(epoch from t - date_bin('10 seconds', t, 'epoch'))::float8 as passed
from clock_timestamp() t;

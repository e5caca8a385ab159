-- Take up to $2 jobs of each of the paused types $1 off the ready list that have passed gates:
-- queued -> queued. They wait in the lane of their type with the turns that they had, and their
-- slots are free. Returns how many.
-- Clock: none.
-- Locks: ready rows, skipping those that are being claimed, changed or canceled.
-- Index: ready_pkey for each type, jobs_pkey.
with found as materialized (
    select r.*
    from unnest($1::text[]) t (job_type)
    cross join lateral (
        select r.ctid as at, r.job_id, r.job_type, r.urgency, r.run_at, r.turn, r.attempt
        from ready r
        where r.job_type = t.job_type and r.admitted_at is not null
        limit $2 for update skip locked
    ) r
), taken as (
    delete from ready r using found f where r.ctid = f.at
    returning f.*
), known as materialized (
    select t.*, j.tenant, j.gates, j.terms
    from taken t
    cross join lateral (
        select j.tenant, coalesce(j.gates, '{}') as gates, j.terms
        from jobs j
        where j.job_id = t.job_id
        offset 0
    ) j
), queued as (
    insert into parked (job_id, lane, urgency, position, turn, job_type, tenant, gates, attempt, capacity, on_conflict)
    select job_id, 'stopped:' || job_type, urgency, run_at, turn, job_type, tenant, gates, attempt,
        (terms ->> 'concurrencyLimit')::integer, terms ->> 'onConflict'
    from known
), woken as (
    insert into wakes (gates, freed)
    select array_agg(gate), true
    from known
    cross join unnest(gates) gate
    having count(*) > 0
)
select count(*)::integer from known;

-- Find the first jobs of the lanes $1, as many as there is room for ($2). If that is null,
-- the lane's first job says itself how many may be active, of which $3 already are; $4 is
-- the most of any lane. room is how many jobs of the lane were looked for.
-- If $5 says so of a lane, and all jobs found in it pass no other gate and agree on how many
-- may be active, they are put on the ready list at once: queued -> queued. Of these, only
-- what the caller reports is returned: admitted, and null for the rest.
-- Clock: statement_timestamp().
-- Locks: the jobs found, in the order of lanes sent (the caller sorts them by their bytes),
-- then urgency, position, job, as edit_parked.sql, so that nobody cancels or changes them
-- before they are admitted. Waits for whoever does that already.
-- Order: urgency, position, job.
-- Index: parked_order; the jobs admitted by their place (tid).
with found as materialized (
    select p.*, l.lane as lane_of, l.room,
        l.plain and bool_and(cardinality(p.gates) = 1) over of_lane
            and min(coalesce(p.capacity, 0)) over of_lane = max(coalesce(p.capacity, 0)) over of_lane
            and (p.capacity is null or count(*) over of_lane <= p.capacity - l.used) as admitted
    from (
        select l.ordinality, l.lane, l.used, l.plain, coalesce(l.room, (
            select least(greatest(coalesce(first.capacity - l.used, $4), 0), $4)
            from parked first
            where first.lane = l.lane
            order by first.urgency, first.position, first.job_id
            limit 1
        )) as room
        from unnest($1::text[], $2::integer[], $3::integer[], $5::boolean[]) with ordinality as l (lane, room, used, plain)
        offset 0
    ) l
    cross join lateral (
        select w.ctid as at, w.job_id, w.urgency, w.position, w.turn, w.job_type, w.tenant, w.gates, w.attempt,
            w.capacity, w.on_conflict, w.parked_at
        from parked w
        where w.lane = l.lane
        order by w.urgency, w.position, w.job_id
        limit coalesce(l.room, 0) for update
    ) p
    window of_lane as (partition by l.ordinality)
), taken as (
    delete from parked w using found f where w.ctid = f.at and f.admitted
    returning w.job_id, w.job_type, w.urgency, w.position, w.attempt
), ready as (
    insert into ready (job_id, job_type, urgency, run_at, attempt, admitted_at)
    select job_id, job_type, urgency, position, attempt, statement_timestamp() from taken
)
select lane_of as lane, room::integer as room, admitted, job_id, job_type, urgency, position, parked_at, capacity,
    case when not admitted then turn end as turn, case when not admitted then tenant end as tenant,
    case when not admitted then gates end as gates, case when not admitted then on_conflict end as on_conflict
from found;

-- Find the first jobs of the lanes $1, as many as there is room for ($2). If that is null,
-- the lane's first job says itself how many may be active, of which $3 already are; $4 is
-- the most of any lane. room is how many jobs of the lane were looked for.
-- Clock: none.
-- Locks: the jobs found, lane by lane, so that nobody cancels or changes them before they
-- are admitted. Waits for whoever does that already.
-- Order: urgency, position, job.
-- Index: parked_order.
select p.job_id, p.lane, p.urgency, p.position, coalesce(p.turn, false) as turn, p.job_type, p.tenant, p.gates,
    coalesce(p.capacity, 0) as capacity, coalesce(p.on_conflict, '') as on_conflict, p.parked_at, l.room::integer as room
from (
    select l.lane, coalesce(l.room, (
        select least(greatest(coalesce(first.capacity - l.used, $4), 0), $4)
        from parked first
        where first.lane = l.lane
        order by first.urgency, first.position, first.job_id
        limit 1
    )) as room
    from unnest($1::text[], $2::integer[], $3::integer[]) as l (lane, room, used)
    offset 0
) l
cross join lateral (
    select *
    from parked w
    where w.lane = l.lane
    order by w.urgency, w.position, w.job_id
    limit coalesce(l.room, 0) for update
) p;

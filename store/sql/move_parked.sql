-- Move parked jobs to other lanes. $3 and $4 are their positions there, and whether these
-- are turns.
-- Clock: none.
-- Locks: parked rows, which the caller has locked already.
-- Index: parked_pkey.
update parked p
set lane = b.lane, position = b.position, turn = b.turn
from unnest($1::uuid[], $2::text[], $3::timestamptz[], $4::boolean[]) as b (job_id, lane, position, turn)
where p.job_id between b.job_id and b.job_id;

-- How long jobs of type $3 have waited and run since $1, in slots of $2, counted from 0. There
-- can be several rows for a slot.
-- Clock: none; the slots begin at $1.
-- Index: latency_slots_pkey.
select floor(extract(epoch from slot - $1::timestamptz) / extract(epoch from $2::interval))::integer as slot, waits, runs
from latency_slots
where slot >= $1 and job_type = $3::text;

-- How long attempts at jobs of the types $2 have run since $1: several rows for each type.
-- Clock: none; the slots begin at $1.
-- Index: latency_slots_pkey.
select job_type, runs
from latency_slots
where slot >= $1::timestamptz and job_type = any($2::text[]);

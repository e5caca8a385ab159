-- How often each event happened since $1, in slots of $2, counted from 0, by job type. Only of
-- type $3, unless it is empty.
-- Clock: none; the slots begin at $1.
-- Index: tally_slots_pkey; the inbox is read whole.
select floor(extract(epoch from slot - $1::timestamptz) / extract(epoch from $2::interval))::integer as slot,
    job_type, event::text as event, sum(jobs)::bigint as jobs
from (
    select slot, job_type, event, jobs from tally_slots
    union all
    select slot, job_type, event, jobs from tallies
) known
where slot >= $1 and ($3::text = '' or job_type = $3)
group by 1, 2, 3;

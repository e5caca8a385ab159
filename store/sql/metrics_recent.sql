-- How often each event has happened in the window $1: whole slots, of which the
-- first may lie partly before it.
-- Clock: now().
-- Index: tally_slots_pkey.
select event::text as event, sum(jobs) as jobs
from (
    select slot, event, jobs from tally_slots
    union all
    select slot, event, jobs from tallies
) known
where slot > now() - $1::interval - interval '10 seconds'
group by event;

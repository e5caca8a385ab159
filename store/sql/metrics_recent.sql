-- How often each event happened in the window $1. Slots count whole, so the first may
-- begin before the window.
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

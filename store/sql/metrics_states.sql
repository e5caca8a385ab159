-- How many jobs there are in each state.
-- Index: ready_pkey, leases_pkey, timers, dead_letters_pkey read whole, the ledger not at all.
select 'queued' as state, count(*) as jobs from ready
union all
select 'running', count(*) from leases
union all
select state::text, count(*) from timers group by state
union all
select 'dead', count(*) from dead_letters
union all
select case event when 'succeeded' then 'succeeded' else 'canceled' end, sum(jobs)
from (
    select event, jobs from tally_totals
    union all
    select event, jobs from tallies
) known
where event in ('succeeded', 'canceled', 'withdrawn')
group by 1;

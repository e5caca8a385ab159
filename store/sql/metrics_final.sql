-- How many jobs are in each final state.
-- Index: dead_letters, tally_totals and the inbox are read whole; the ledger is not
-- read.
select 'dead' as state, count(*) as jobs from dead_letters
union all
select case event when 'succeeded' then 'succeeded' else 'canceled' end, sum(jobs)
from (
    select event, jobs from tally_totals
    union all
    select event, jobs from tallies
) known
where event in ('succeeded', 'canceled', 'withdrawn')
group by 1;

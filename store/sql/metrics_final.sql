-- How many jobs have succeeded and were canceled.
-- Index: tally_totals and the inbox are read whole; the ledger is not read.
select case event when 'succeeded' then 'succeeded' else 'canceled' end as state, sum(jobs) as jobs
from (
    select event, jobs from tally_totals
    union all
    select event, jobs from tallies
) known
where event in ('succeeded', 'canceled', 'withdrawn')
group by 1;

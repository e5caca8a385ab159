-- How many jobs in a final state were charged each number of attempts. A dead job that
-- was requeued no longer counts.
-- Index: tally_attempts and the inbox are read whole.
select attempt, sum(jobs) as jobs
from (
    select attempt, jobs from tally_attempts
    union all
    select attempt, case event when 'requeued' then -jobs else jobs end
    from tallies
    where event in ('succeeded', 'dead', 'canceled', 'withdrawn', 'requeued')
) known
group by attempt;

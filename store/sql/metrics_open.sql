-- How many jobs wait and run, by state and by the attempts that they were charged.
-- Index: ready, parked, timers and leases are read whole, once; each running job's ledger row
-- by jobs_pkey.
select 'queued' as state, attempt, count(*) as jobs from ready group by attempt
union all
select 'queued', attempt, count(*) from parked group by attempt
union all
select state::text, attempt, count(*) from timers group by state, attempt
union all
select 'running', attempt + 1, count(*)
from (select (select j.attempt from jobs j where j.job_id = l.job_id) as attempt from leases l) running
group by attempt;

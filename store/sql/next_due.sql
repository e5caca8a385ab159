-- How long until the next timer is due; null when none will be.
-- Clock: now(); the program receives a duration, never an instant.
-- Index: timers_run_at.
select greatest(run_at - now(), interval '0') as due_in
from timers
where run_at < 'infinity'
order by run_at
limit 1;

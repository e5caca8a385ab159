-- How long it is until the next timer is due; no row if none ever is. A longer wait than
-- a century is cut to that: it would not fit the program's durations.
-- Clock: now(); the program receives a duration, never an instant.
-- Index: timers_run_at.
select least(greatest(run_at - now(), interval '0'), interval '36500 days') as due_in
from timers
where run_at < 'infinity'
order by run_at
limit 1;

-- How long until the next timer is due, no row when none will be. A wait of
-- more than a century would not fit the program's durations, and is one.
-- Clock: now(); the program receives a duration, never an instant.
-- Index: timers_run_at.
select least(greatest(run_at - now(), interval '0'), interval '36500 days') as due_in
from timers
where run_at < 'infinity'
order by run_at
limit 1;

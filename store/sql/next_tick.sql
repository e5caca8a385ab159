-- How long it is until somebody must look at a schedule, since its next tick is due or to be
-- tried again; no row if never. A longer wait than a century is cut to that: it would not fit
-- the program's durations.
-- Clock: now(); the program receives a duration, never an instant.
-- Index: schedules_look_at.
select least(greatest(look_at - now(), interval '0'), interval '36500 days') as due_in
from schedules
where look_at is not null
order by look_at
limit 1;

-- How long it is until the next job expires; no row if none ever does. A longer wait than
-- a century is cut to that: it would not fit the program's durations.
-- Clock: now(); the program receives a duration, never an instant.
-- Index: expiries_expires_at.
select least(greatest(expires_at - now(), interval '0'), interval '36500 days') as due_in
from expiries
order by expires_at
limit 1;

-- How many jobs hold a slot of the gates $1. Those that were freed since the admitter last
-- looked are still counted.
-- Index: slots_pkey.
select gate, used from slots where gate = any($1::text[]);

-- Read what is stored of the gates $1. There is a row for each that has one.
-- Clock: none. Fence: none, it only reads; the caller is the one who admits.
-- Index: slots_pkey.
select s.gate, s.used, s.tokens, s.tokens_at, s.wake_at
from unnest($1::text[]) g (gate)
join slots s on s.gate between g.gate and g.gate;

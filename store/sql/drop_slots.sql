-- Forget gates of which nothing is used.
-- Clock: none.
-- Locks: their rows. The caller is the one who admits.
-- Index: slots_pkey.
delete from slots s using unnest($1::text[]) as b (gate)
where s.gate between b.gate and b.gate;

-- Store what has changed of gates.
-- Clock: none.
-- Locks: their rows. The caller is the one who admits.
-- Index: slots_pkey.
update slots s
set used = b.used, tokens = b.tokens, tokens_at = b.tokens_at, wake_at = b.wake_at
from unnest($1::text[], $2::integer[], $3::float8[], $4::timestamptz[], $5::timestamptz[])
    as b (gate, used, tokens, tokens_at, wake_at)
where s.gate between b.gate and b.gate;

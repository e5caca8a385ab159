-- Store gates that have nothing stored.
-- Clock: none.
-- Locks: the new rows. The caller is the one who admits.
-- Index: slots_pkey.
insert into slots (gate, used, tokens, tokens_at, wake_at)
select * from unnest($1::text[], $2::integer[], $3::float8[], $4::timestamptz[], $5::timestamptz[]);

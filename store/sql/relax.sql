-- Settings of this transaction: those named $1 get the values $2.
-- Index: none.
select set_config(name, value, true)
from unnest($1::text[], $2::text[]) as s (name, value);

-- Take the surplus $2 of the gates $1 off their slots, and let the next round look at them.
-- Clock: none.
-- Locks: their rows. The caller is the one who admits.
-- Index: slots_pkey.
with corrected as (
    insert into slots as s (gate, used)
    select gate, greatest(-surplus, 0) from unnest($1::text[], $2::integer[]) as b (gate, surplus)
    on conflict (gate) do update set used = s.used + excluded.used - (
        select greatest(b.surplus, 0) from unnest($1::text[], $2::integer[]) as b (gate, surplus) where b.gate = s.gate
    )
)
insert into wakes (gates, freed) values ($1, false);

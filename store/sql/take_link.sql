-- Take the link with digest $1 away and return it, unless its time is over. Of several that
-- try at once, one gets it.
-- Clock: now().
-- Locks: its own row.
-- Index: ui_links_pkey.
with taken as (
    delete from ui_links where digest = $1 returning caller, binding, expires_at - now() as lasts
)
select caller, binding, lasts from taken where lasts > interval '0';

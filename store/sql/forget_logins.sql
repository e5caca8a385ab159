-- Delete sessions and links whose time is over. Returns how many.
-- Clock: now().
-- Locks: the rows deleted.
-- Index: none; a few thousand rows at most.
with links as (
    delete from ui_links where expires_at <= now() returning digest
), sessions as (
    delete from ui_sessions where expires_at <= now() returning digest
)
select ((select count(*) from links) + (select count(*) from sessions))::integer as logins;

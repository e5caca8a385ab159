-- Make the link with digest $1, of caller $2 with binding $3, for the time $4. Of the caller's
-- links, only the $5 newest are kept, this one among them.
-- Clock: now().
-- Locks: the rows deleted and its own.
-- Index: ui_links_pkey; a few hundred rows at most.
with old as (
    delete from ui_links l
    using (select digest from ui_links where caller = $2 order by created_at desc, digest offset $5::integer - 1) o
    where l.digest = o.digest
)
insert into ui_links (digest, caller, binding, expires_at) values ($1, $2, $3, now() + $4::interval);

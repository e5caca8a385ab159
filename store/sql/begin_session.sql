-- Begin the session with digest $1, of caller $2 with binding $3, for the time $4. Of the
-- caller's sessions, only the $5 newest are kept, this one among them.
-- Clock: now().
-- Locks: the rows deleted and its own.
-- Index: ui_sessions_pkey; a few thousand rows at most.
with old as (
    delete from ui_sessions s
    using (select digest from ui_sessions where caller = $2 order by created_at desc, digest offset $5::integer - 1) o
    where s.digest = o.digest
)
insert into ui_sessions (digest, caller, binding, expires_at) values ($1, $2, $3, now() + $4::interval);

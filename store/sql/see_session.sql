-- Find the session with digest $1, unless its time is over, and write down that it was seen
-- if that was last done $2 ago or longer.
-- Clock: now().
-- Locks: its own row, if it is written down.
-- Index: ui_sessions_pkey.
with seen as (
    update ui_sessions set seen_at = now() where digest = $1 and expires_at > now() and seen_at <= now() - $2::interval
)
select caller, binding, expires_at - now() as lasts from ui_sessions where digest = $1 and expires_at > now();

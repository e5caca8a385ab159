-- End the session with digest $1.
-- Locks: its own row.
-- Index: ui_sessions_pkey.
delete from ui_sessions where digest = $1;

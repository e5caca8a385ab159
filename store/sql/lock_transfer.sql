-- Become the one export or import that works on the database, until the session ends.
-- lock_admission.sql lists all advisory locks.
-- Clock: none.
-- Locks: an advisory lock of the session, which waits for that of another.
-- Index: none.
select pg_advisory_lock(4653019);

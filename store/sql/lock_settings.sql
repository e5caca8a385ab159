-- Become the one who changes the settings of the role: two who do at once would fail. The
-- lock ends with the transaction. lock_admission.sql lists all such locks.
-- Clock: none.
-- Locks: an advisory lock of the transaction, which waits for another process.
-- Index: none.
select pg_advisory_xact_lock(4653018);

-- Let one process at a time raise the priority of jobs that have waited long; others do
-- nothing meanwhile.
-- Clock: none.
-- Locks: an advisory lock of the transaction.
-- Index: none.
select pg_try_advisory_xact_lock(4653012);

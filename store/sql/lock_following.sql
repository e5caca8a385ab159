-- Become the one who follows ended jobs up. The lock ends with the transaction. One
-- orchestrator at a time does this, so that ends are followed up in one order, and nobody
-- else changes what a round has read.
-- Clock: none.
-- Locks: an advisory lock of the transaction, which waits for the round of another process.
-- Index: none.
select pg_advisory_xact_lock(4653014);

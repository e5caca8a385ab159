-- Take away what says that the ledger is closed.
-- Clock: none.
-- Locks: ledger_closure, against everybody.
-- Index: none.
drop table ledger_closure;

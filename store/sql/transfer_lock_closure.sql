-- Become the one who may open the ledger. Two that only lock its row would each wait for the
-- other when they drop the table. Who starts meanwhile can still read why the ledger is closed.
-- Clock: none.
-- Locks: ledger_closure, against everybody who does not only read it.
-- Index: none.
lock table ledger_closure in exclusive mode;

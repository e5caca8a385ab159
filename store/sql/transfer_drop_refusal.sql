-- Take the triggers of a closed ledger away, with their function.
-- Clock: none.
-- Locks: all tables, against everybody.
-- Index: none.
drop function refuse_closed() cascade;

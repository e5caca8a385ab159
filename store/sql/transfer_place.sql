-- How many bytes of the export $1 are in. Its row stays locked until the next segment is in.
-- Clock: none.
-- Locks: its row.
-- Index: ledger_closure_pkey.
select bytes from ledger_closure where export_id = $1 for update;

-- Note that $2 bytes of the export $1 are in, and $3 rows.
-- Clock: none.
-- Locks: its row, which transfer_place.sql has locked.
-- Index: ledger_closure_pkey.
update ledger_closure set bytes = $2, rows = $3 where export_id = $1;

-- Note that the ledger is closed for the export $1, why ($2), and the checksum $3 of the file.
-- Clock: now(), as the default of closed_at.
-- Locks: none; the table is new.
-- Index: ledger_closure_pkey.
insert into ledger_closure (export_id, reason, sha256) values ($1, $2, $3);

-- Why the ledger is closed. An open ledger lacks the table.
-- Clock: none.
-- Index: none; one row.
select export_id, reason, closed_at, sha256, bytes, rows from ledger_closure;

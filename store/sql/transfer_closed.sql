-- Whether the ledger is closed.
-- Clock: none.
-- Index: none; catalogs.
select to_regclass('ledger_closure') is not null as closed;

-- Let the transaction change the ledger that is closed for the export $1.
-- Clock: none.
-- Index: none.
select set_config('holdfast.transfer', $1, true);

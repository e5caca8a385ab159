-- Why the ledger is closed, how many rows of an import are in, and whether the export or import
-- is at work: then it holds the lock of lock_transfer.sql. An open ledger lacks the table.
-- Clock: none.
-- Index: none; one row, and the locks of the server.
select c.reason, c.closed_at, c.rows, exists (
    select
    from pg_locks l
    join pg_database d on d.oid = l.database and d.datname = current_database()
    where l.locktype = 'advisory' and l.classid = 0 and l.objid = 4653019 and l.objsubid = 1 and l.granted
) as at_work
from ledger_closure c;

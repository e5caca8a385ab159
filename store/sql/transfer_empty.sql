-- Take away the one row that a migration puts into a new database, so that it is empty. It
-- stays if it has been used.
-- Clock: none.
-- Locks: its row.
-- Index: none; one row.
delete from last_event where id = 0;

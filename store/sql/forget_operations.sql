-- Delete operations that have ended longer than $1 ago.
-- Clock: now().
-- Locks: their rows.
-- Index: none; a handful of rows.
delete from operations
where finished_at < now() - $1::interval;

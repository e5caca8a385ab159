-- Forget how far walk $1 of the deleter is: nothing is deleted by it any more.
-- Locks: its row.
-- Index: retention_pkey.
delete from retention where walk = $1;

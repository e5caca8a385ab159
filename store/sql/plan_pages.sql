-- How many pages the ledger has.
-- Index: none; its size in the file system.
select pg_relation_size('jobs') / current_setting('block_size')::bigint;

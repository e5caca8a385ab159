-- Let the commit of this transaction, and of no other, go without waiting for
-- the disk and for standbys. The server writes its log within three times
-- wal_writer_delay; until then a crash of it forgets the transaction, whole.
-- Index: none; a setting.
select set_config('synchronous_commit', 'off', true);

-- Make the commit of this transaction, and no other, wait neither for the disk nor for
-- standbys. The server writes its log within three times wal_writer_delay. If it
-- crashes before, the whole transaction is lost.
-- Index: none; a setting.
select set_config('synchronous_commit', 'off', true);

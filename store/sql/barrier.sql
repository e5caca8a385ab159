-- Write an empty message into the log of the server, so that the commit of this
-- transaction waits for standbys as that of any other change does, and so for all
-- that was committed before. A transaction that only has an id does not wait.
-- Nobody reads the message; it needs neither wal_level = logical nor a privilege.
-- Index: none.
select pg_logical_emit_message(true, 'holdfast', '');

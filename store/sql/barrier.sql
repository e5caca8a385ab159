-- Write an empty message into the server's log, so that the commit of this
-- transaction waits for standbys, and so for everything committed before it. A
-- transaction that only has an id does not wait. Nobody reads the message, and it
-- needs neither wal_level = logical nor a privilege.
-- Index: none.
select pg_logical_emit_message(true, 'holdfast', '');

-- Write an empty message into the server's log. The commit of this transaction then
-- waits until the standbys have it, and so everything committed before it. A
-- transaction that only has an id does not wait. Nobody reads the message, and it
-- needs neither wal_level = logical nor a privilege.
-- Index: none.
select pg_logical_emit_message(true, 'holdfast', '');

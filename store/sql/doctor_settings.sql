-- What of the server's settings decides whether jobs can be lost, and how many
-- of its connections are in use.
-- Index: none; views of the server's state.
select current_setting('fsync') = 'on' as fsync, current_setting('full_page_writes') = 'on' as full_page_writes,
    current_setting('synchronous_commit') <> 'off' as synchronous_commit,
    current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
        - coalesce(current_setting('reserved_connections', true)::int, 0) as connections,
    (select sum(numbackends)::int from pg_stat_database) as connected;

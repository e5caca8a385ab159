-- The server's settings that decide whether jobs can be written, and lost; how many of its
-- connections are in use; and how much it writes to its log between two checkpoints on
-- average, compared with the limit.
-- Clock: now().
-- Index: none; views of the server's state.
select not (pg_is_in_recovery() or current_setting('default_transaction_read_only')::boolean) as writable,
    current_setting('fsync') = 'on' as fsync, current_setting('full_page_writes') = 'on' as full_page_writes,
    current_setting('synchronous_commit') <> 'off' as synchronous_commit,
    current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
        - coalesce(current_setting('reserved_connections', true)::int, 0) as connections,
    (select sum(numbackends)::int from pg_stat_database) as connected,
    pg_size_bytes(current_setting('max_wal_size')) as max_log,
    (
        select (wal_bytes * checkpoint / greatest(extract(epoch from now() - stats_reset), checkpoint))::bigint
        from pg_stat_wal, extract(epoch from current_setting('checkpoint_timeout')::interval) as checkpoint
    ) as log;

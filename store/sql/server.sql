-- Which server this is, which of its databases and which user the session has, and the
-- timeline on which the server takes writes, 0 if it takes none. A copy has the same
-- cluster; each promotion starts a timeline with a higher number.
-- Clock: none.
-- Index: none; functions of the server.
select system_identifier as cluster, pg_postmaster_start_time() as started, current_database()::text as database, session_user::text as "user",
    case when pg_is_in_recovery() then 0 else ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::int end as timeline
from pg_control_system();

-- Which database this is, and how far it is in the log: on a standby, up to where the log was
-- replayed, and what was replayed is visible; on a primary, up to where the log was flushed. A
-- standby receives nothing else, so it has replayed as much as an idle primary has flushed.
-- (The position up to which the primary has inserted would be ahead of that by the header of a
-- page, or by what nobody has flushed.) The timeline is 0 on a standby. Since is how long ago, by
-- the clocks of both servers, the last commit was made that a standby has replayed.
-- Clock: now(), for an estimate only.
-- Index: none; functions of the server.
select system_identifier as cluster,
    (select oid::bigint from pg_database where datname = current_database()) as database,
    case when pg_is_in_recovery() then 0 else ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::int end as timeline,
    (case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_flush_lsn() end - '0/0')::bigint as position,
    case when pg_is_in_recovery() then now() - pg_last_xact_replay_timestamp() end as since
from pg_control_system();

-- Whether commits wait for standbys, and the standbys that are connected. Without any there
-- is one row with nulls. Backups, archives and subscribers receive the log too; nobody can
-- fail over to them. An ordinary user does not see the state of a standby.
-- Clock: none.
-- Index: none; views of the server's state.
select current_setting('synchronous_commit') as waits, current_setting('synchronous_standby_names') as names,
    r.application_name as standby, r.sync_state as state
from (select) as server
left join pg_stat_replication r on r.application_name not in ('pg_basebackup', 'pg_receivewal')
    and not exists (select from pg_replication_slots s where s.active_pid = r.pid and s.slot_type = 'logical')
order by r.application_name;

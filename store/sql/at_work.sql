-- Which backends in $1 are working on a statement, or waiting for a lock or a standby. Those
-- that wait for their client are not. $2 is the id of this session's backend as its
-- connection knows it. Behind a pooler that is no id of the server's, and neither are those
-- in $1: then all of them may be at work while a session of the role has been waiting for
-- a standby for a second.
-- Clock: now().
-- Index: none; pg_stat_activity.
select w.pid
from unnest($1::integer[]) as w (pid)
where exists (
    select
    from pg_stat_activity a
    where case
        when $2::integer = pg_backend_pid() then a.pid = w.pid and a.state = 'active' and a.wait_event_type is distinct from 'Client'
        else a.usename = session_user and a.datname = current_database() and a.wait_event = 'SyncRep'
            and a.query_start < now() - interval '1 second'
    end
);

-- The statements that give the session's role, in this database, the settings named $1 with
-- the values $2. Settings that it has already have none.
-- Clock: none.
-- Index: none; catalogs.
select format('alter role %I in database %I set %I = %L', session_user, current_database(), wanted.name, wanted.value)
from unnest($1::text[], $2::text[]) as wanted (name, value)
where not exists (
    select
    from pg_db_role_setting s
    join pg_database d on d.oid = s.setdatabase and d.datname = current_database()
    join pg_roles r on r.oid = s.setrole and r.rolname = session_user
    cross join unnest(s.setconfig) as has (setting)
    where lower(has.setting) = lower(wanted.name || '=' || wanted.value)
)
order by wanted.name;

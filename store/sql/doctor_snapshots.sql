-- Everything that stops vacuum from removing dead rows of this database, the oldest
-- first, with its start (if known) and its age in transactions. An ordinary user cannot
-- see the sessions of other users; those are only counted.
-- Clock: now().
-- Index: none; views of the server's state.
select 'session' as kind, concat_ws(', ', nullif(application_name, ''), usename, 'process ' || pid) as holder,
    now() - xact_start as held, greatest(age(backend_xmin), age(backend_xid)) as transactions
from pg_stat_activity
where pid <> pg_backend_pid() and (datname = current_database() or datname is null)
    and backend_type <> 'autovacuum worker' and (backend_xmin is not null or backend_xid is not null)
union all
select 'prepared transaction', gid, now() - prepared, age(transaction)
from pg_prepared_xacts
where database = current_database()
union all
select 'replication slot', slot_name, null, greatest(age(xmin), age(catalog_xmin))
from pg_replication_slots
where (database = current_database() or database is null) and (xmin is not null or catalog_xmin is not null)
union all
select 'hidden', count(*)::text, null, 0
from pg_stat_activity
where datname = current_database() and query = '<insufficient privilege>'
having count(*) > 0
order by transactions desc, held desc nulls last;

-- The time, and the age of the oldest snapshot that stops vacuum from removing dead
-- rows of this database. The snapshot belongs to a transaction, a prepared transaction
-- or a replication slot. Its age is in transactions, and in time if its start is known.
-- Vacuum's own snapshots do not count.
-- Clock: now().
-- Index: none; a handful of rows.
select now() as at,
    coalesce(max(transactions), 0)::bigint as transactions,
    greatest(coalesce(max(now() - since), interval '0'), interval '0') as age
from (
    select age(backend_xmin) as transactions, xact_start as since
    from pg_stat_activity
    where backend_xmin is not null and pid <> pg_backend_pid()
        and (datname = current_database() or datname is null) and backend_type <> 'autovacuum worker'
    union all
    select age(transaction), prepared from pg_prepared_xacts where database = current_database()
    union all
    select greatest(age(xmin), age(catalog_xmin)), null
    from pg_replication_slots
    where database = current_database() or database is null
) held;

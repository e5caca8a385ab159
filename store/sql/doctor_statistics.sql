-- What autovacuum has left undone in each table. The numbers of rows are estimates. analyze_after
-- is after how many changes it analyzes the table, besides a share of the rows.
-- Index: none; the catalogs of the schema.
select s.relname::text as name, greatest(s.n_live_tup, c.reltuples::bigint) as live, s.n_dead_tup as dead,
    coalesce(s.last_analyze, s.last_autoanalyze) is not null as analyzed,
    coalesce(
        (select option_value::bigint from pg_options_to_table(c.reloptions) where option_name = 'autovacuum_analyze_threshold'),
        current_setting('autovacuum_analyze_threshold')::bigint
    ) as analyze_after,
    current_setting('autovacuum') = 'off' or current_setting('track_counts') = 'off' or exists (
        select from pg_options_to_table(c.reloptions)
        where option_name = 'autovacuum_enabled' and not option_value::boolean
    ) as unattended
from pg_stat_user_tables s
join pg_class c on c.oid = s.relid
where s.schemaname = current_schema()
order by s.relname;

-- The last value that each sequence of the schema has given out; 0 for none.
-- Clock: none.
-- Index: those of the catalog.
select sequencename::text as name, coalesce(last_value, 0) as last
from pg_sequences
where schemaname = current_schema() and sequencename <> 'goose_db_version_id_seq'
order by 1;

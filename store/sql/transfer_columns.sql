-- The columns of the tables $1 in the schema of the session, without generated ones, in their
-- order. place is that in the primary key, from 1; 0 for a column outside it.
-- Clock: none.
-- Index: those of the catalog.
select c.relname::text as table_name, a.attname::text as column_name,
    coalesce(array_position(i.indkey::int2[], a.attnum) + 1, 0) as place
from pg_class c
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
left join pg_index i on i.indrelid = c.oid and i.indisprimary
where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r' and c.relname = any ($1::text[])
order by c.relname, a.attnum;

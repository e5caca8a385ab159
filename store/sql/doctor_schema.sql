-- The migrations that the schema has, in order. The table belongs to goose, which
-- applies them. Its times are in the server's time zone, so they are not used.
-- Index: none; a row for each migration.
select coalesce(array_agg(distinct version_id order by version_id), '{}') as versions
from goose_db_version
where is_applied and version_id > 0;

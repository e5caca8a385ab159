-- Which migrations the schema has, in order. The table is goose's, which brings
-- the schema up to date; its times are of whatever zone the server had, and of
-- no use here.
-- Index: none; a row for each migration.
select coalesce(array_agg(distinct version_id order by version_id), '{}') as versions
from goose_db_version
where is_applied and version_id > 0;

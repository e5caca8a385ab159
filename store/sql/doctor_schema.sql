-- The version of the schema, and when the database got it. The table is goose's,
-- which brings the schema up to date.
-- Index: none; a row for each migration.
select version_id as version, tstamp as applied
from goose_db_version
where is_applied
order by version_id desc, id desc
limit 1;

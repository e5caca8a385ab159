-- The version of the schema. The table is goose's, which brings the schema up to
-- date; its times are of whatever zone the server had, and of no use here.
-- Index: none; a row for each migration.
select max(version_id) as version
from goose_db_version
where is_applied;

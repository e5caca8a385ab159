-- The newest migration of the database.
-- Clock: none.
-- Index: none; a row for each migration.
select coalesce(max(version_id), 0) as version from goose_db_version where is_applied;

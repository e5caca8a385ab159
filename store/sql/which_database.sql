-- Which database of which cluster the session is in. A standby has its primary's cluster.
-- Clock: none.
-- Index: none; the control file.
select system_identifier as cluster, current_database()::text as name from pg_control_system();

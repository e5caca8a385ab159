-- Vacuuming or analyzing a table makes every session plan each statement about it anew, which
-- costs more than most of these statements. Rows of the tables here come and go, so the earlier
-- thresholds were reached every few seconds: 1,000 dead rows for the lists, and otherwise
-- PostgreSQL's 1,000 new rows or 50 changes, and a share of the rows. Sessions are told how to plan,
-- so their statistics decide nothing in the statements that run for every job; tests hold the plans
-- of these with and without statistics.
--
-- Earlier orchestrators need nothing of this.

-- +goose Up
-- The ledger first: a VACUUM of it by hand delays the migration, which then locks no other table.
-- Its thresholds are shares of its rows, unless it has few.
alter table jobs set (autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_insert_threshold = 10000, autovacuum_analyze_threshold = 10000);
-- Heartbeats of fifty workers are as many changes as it has rows; they fit into its pages.
alter table workers set (fillfactor = 50, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = 100000, autovacuum_analyze_threshold = 100000);
alter table ready set (autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = 100000, autovacuum_analyze_threshold = 100000);
alter table leases set (autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = 100000, autovacuum_analyze_threshold = 100000);
alter table timers set (autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = 100000, autovacuum_analyze_threshold = 100000);
alter table expiries set (autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = 100000, autovacuum_analyze_threshold = 100000);
alter table parked set (autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = 100000, autovacuum_analyze_threshold = 100000);
alter table wakes set (autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = 100000, autovacuum_analyze_threshold = 100000);
alter table slots set (autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = 100000, autovacuum_analyze_threshold = 100000);
alter table ends set (autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = 100000, autovacuum_analyze_threshold = 100000);
alter table unique_keys set (autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = 100000, autovacuum_analyze_threshold = 100000);
-- Rows of each batch of jobs, deleted within seconds. There is no index to bloat.
alter table tallies set (autovacuum_vacuum_threshold = 50000, autovacuum_vacuum_insert_threshold = 100000, autovacuum_analyze_threshold = 100000);
alter table tally_totals set (autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = 100000, autovacuum_analyze_threshold = 100000);
alter table tally_slots set (autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = 100000, autovacuum_analyze_threshold = 100000);
alter table tally_workers set (autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = 100000, autovacuum_analyze_threshold = 100000);
alter table tally_attempts set (autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = 100000, autovacuum_analyze_threshold = 100000);
alter table latency_slots set (autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = 100000, autovacuum_analyze_threshold = 100000);
alter table plugin_status set (autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = 100000, autovacuum_analyze_threshold = 100000);

-- +goose Down
alter table jobs reset (autovacuum_vacuum_threshold, autovacuum_vacuum_insert_threshold, autovacuum_analyze_threshold);
alter table plugin_status reset (autovacuum_vacuum_threshold, autovacuum_vacuum_insert_threshold, autovacuum_analyze_threshold);
alter table workers reset (fillfactor, autovacuum_vacuum_threshold, autovacuum_vacuum_insert_threshold, autovacuum_analyze_threshold);
alter table latency_slots reset (autovacuum_vacuum_threshold, autovacuum_vacuum_insert_threshold, autovacuum_analyze_threshold);
alter table tally_attempts reset (autovacuum_vacuum_threshold, autovacuum_vacuum_insert_threshold, autovacuum_analyze_threshold);
alter table tally_workers reset (autovacuum_vacuum_threshold, autovacuum_vacuum_insert_threshold, autovacuum_analyze_threshold);
alter table tally_slots reset (autovacuum_vacuum_threshold, autovacuum_vacuum_insert_threshold, autovacuum_analyze_threshold);
alter table tally_totals reset (autovacuum_vacuum_threshold, autovacuum_vacuum_insert_threshold, autovacuum_analyze_threshold);
alter table tallies set (autovacuum_vacuum_threshold = 1000), reset (autovacuum_vacuum_insert_threshold, autovacuum_analyze_threshold);
alter table unique_keys reset (autovacuum_vacuum_threshold, autovacuum_vacuum_insert_threshold, autovacuum_analyze_threshold);
alter table ends set (autovacuum_vacuum_threshold = 1000), reset (autovacuum_vacuum_insert_threshold, autovacuum_analyze_threshold);
alter table slots set (autovacuum_vacuum_threshold = 1000), reset (autovacuum_vacuum_insert_threshold, autovacuum_analyze_threshold);
alter table wakes set (autovacuum_vacuum_threshold = 1000), reset (autovacuum_vacuum_insert_threshold, autovacuum_analyze_threshold);
alter table parked set (autovacuum_vacuum_threshold = 1000), reset (autovacuum_vacuum_insert_threshold, autovacuum_analyze_threshold);
alter table expiries reset (autovacuum_vacuum_threshold, autovacuum_vacuum_insert_threshold, autovacuum_analyze_threshold);
alter table timers set (autovacuum_vacuum_threshold = 1000), reset (autovacuum_vacuum_insert_threshold, autovacuum_analyze_threshold);
alter table leases set (autovacuum_vacuum_threshold = 1000), reset (autovacuum_vacuum_insert_threshold, autovacuum_analyze_threshold);
alter table ready set (autovacuum_vacuum_threshold = 1000), reset (autovacuum_vacuum_insert_threshold, autovacuum_analyze_threshold);

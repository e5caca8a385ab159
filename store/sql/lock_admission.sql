-- Become the one who admits. The lock ends with the transaction. Jobs are admitted by one
-- orchestrator at a time, so that nobody else changes `slots` between what a round reads
-- and what it writes. All advisory locks, each with one meaning: 4653010 tallies, 4653011
-- admission, 4653012 ageing, 4653013 unique keys, 4653014
-- the follower, 4653017 retention, 4653018 settings of the role, 4653019 export and import.
-- Clock: none.
-- Locks: an advisory lock of the transaction, which waits for the round of another process.
-- Index: none.
select pg_advisory_xact_lock(4653011);

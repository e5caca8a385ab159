-- Name lanes in the inbox that the next round must look at.
-- Clock: none.
-- Locks: none.
-- Index: none.
insert into wakes (gates, freed) values ($1::text[], false);

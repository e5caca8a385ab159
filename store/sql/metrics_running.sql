-- How many jobs run.
-- Index: leases is read whole.
select count(*) from leases;

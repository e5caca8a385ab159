-- Who works on the ledger: workers that count as alive, and how many jobs have a lease.
-- Clock: now().
-- Index: none; a handful of workers, and leases is read whole, but it is small.
select (select count(*) from leases) as leases,
    array(
        select worker_id || ' until ' || to_char(alive_until, 'HH24:MI:SS "UTC"')
        from workers where stopped_at is null and alive_until > now() order by worker_id
    ) as alive;

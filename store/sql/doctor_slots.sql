-- Gates whose count of used slots is wrong: as stored, and as it is. A slot is used by each
-- job with the gate that is ready or leased, and by each freed slot that is still in the
-- admitter's inbox. Up to $1, the most wrong first.
-- Index: none; ready, leases, wakes and slots are read whole, and the ledger rows of the
-- jobs.
with held as (
    select gate, count(*) as held
    from (
        select unnest(j.gates) as gate
        from (select job_id from ready union all select job_id from leases) a
        join jobs j on j.job_id = a.job_id
        where j.gates is not null
        union all
        select unnest(gates) from wakes where freed
    ) one
    where split_part(gate, ':', 1) in ('key', 'tenant', 'type')
    group by gate
)
select coalesce(s.gate, h.gate) as gate, coalesce(s.used, 0)::bigint as used, coalesce(h.held, 0) as held
from slots s
full join held h on h.gate = s.gate
where coalesce(s.used, 0) <> coalesce(h.held, 0)
order by abs(coalesce(s.used, 0) - coalesce(h.held, 0)) desc, 1
limit $1;

-- Empty the admitter's inbox: up to $1 rows, fewer if they name more than $2 gates. There
-- is a row for each gate that they name, or that is due to be looked at (up to $2): how
-- many slots it has lost, and what is stored of it. If there is none, the gate is empty.
-- more says that rows are left, next is when the next gate is due.
-- Clock: statement_timestamp(), which is later than the wait for the admitter's lock.
-- Locks: the rows taken, which nobody else changes. The caller is the one who admits.
-- Index: none on the inbox, which is read whole; slots_wake_at, slots_pkey.
with waiting as materialized (
    select ctid as at, sum(cardinality(gates)) over (order by ctid) - cardinality(gates) < $2 as fits
    from (select ctid, gates from wakes limit $1) first
), taken as (
    delete from wakes w where w.ctid = any (array(select at from waiting where fits))
    returning w.gates, w.freed
), due as (
    select gate from slots where wake_at <= statement_timestamp() order by wake_at limit $2
), touched as (
    select gate, sum(freed) as freed
    from (
        select gate, case when t.freed then 1 else 0 end as freed
        from taken t
        cross join unnest(t.gates) gate
        union all
        select gate, 0 from due
    ) named
    group by gate
), known as (
    select t.gate, t.freed, s.gate is not null as stored, s.used, s.tokens, s.tokens_at, s.wake_at
    from touched t
    left join slots s on s.gate between t.gate and t.gate
)
select statement_timestamp() as at, (select count(*) = $1 or count(*) > count(*) filter (where fits) from waiting) as more,
    (select min(wake_at) from slots where wake_at > statement_timestamp()) as next,
    coalesce(k.gate, '') as gate, coalesce(k.freed, 0)::integer as freed, coalesce(k.stored, false) as stored,
    coalesce(k.used, 0) as used, k.tokens, k.tokens_at, k.wake_at
from (select) once
left join known k on true;

-- Name all lanes in which jobs are parked in the inbox, and return how many there are.
-- Clock: none.
-- Locks: none.
-- Index: parked_order, from lane to lane.
with recursive lanes as (
    (select lane from parked where lane > '' order by lane limit 1)
    union all
    select (select p.lane from parked p where p.lane > l.lane order by p.lane limit 1)
    from lanes l
    where l.lane is not null
), numbered as (
    select lane, row_number() over () as nth from lanes where lane is not null
), woken as (
    insert into wakes (gates, freed)
    select array_agg(lane), false from numbered group by nth / 500
)
select count(*) from numbered;

-- Delete the oldest events: of the first $3, those before the first that is to be kept,
-- because it was not recorded longer than $1 ago, and is one of the last $2. What remains has no gaps.
-- Returns how many it has deleted.
-- Clock: now().
-- Locks: the rows deleted, in the order of their ids.
-- Index: events_pkey.
with oldest as (
    select id, recorded_at from events order by id limit $3
), kept as (
    select coalesce(
        min(o.id) filter (where o.recorded_at >= now() - $1::interval and o.id > (select l.id from last_event l) - $2),
        max(o.id) + 1
    ) as first
    from oldest o
), deleted as (
    delete from events where id < (select first from kept) returning id
)
select count(*)::integer from deleted;

-- The comment on the ledger, in which an import leaves a mark; empty if there is none.
-- Clock: none.
-- Index: none; catalogs.
select coalesce(obj_description(to_regclass('jobs'), 'pg_class'), '') as mark;

-- Whether the schema knows cells: earlier ones do not.
-- Clock: none.
-- Index: none; catalogs.
select to_regclass('cell') is not null;

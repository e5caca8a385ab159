-- Which cell the database is; no row if it is none.
-- Clock: none.
-- Index: none; one row.
select number from cell;

-- Make the database the cell $1, unless it is a cell already; and which it is then.
-- Clock: now().
-- Locks: its one row.
-- Index: cell_pkey.
insert into cell (number) values ($1::smallint)
on conflict (only_row) do update set number = cell.number
returning number;

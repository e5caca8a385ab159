-- Let the sequence $1 go on after $2. A rollback does not take that back.
-- Clock: none.
-- Index: none.
select setval($1::regclass, $2);

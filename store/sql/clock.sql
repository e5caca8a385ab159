-- The time of the database.
-- Clock: now().
select now();
